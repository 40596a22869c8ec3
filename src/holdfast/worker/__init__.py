"""Pulls tasks under leases and runs them: the pool, its heartbeat, the context a step sees."""
