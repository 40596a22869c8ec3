"""The one writer of state: what may happen to tasks and runs, and what follows from it."""
