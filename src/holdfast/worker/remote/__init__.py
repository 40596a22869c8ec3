"""A worker elsewhere: the same executors, its store reached through a server."""
