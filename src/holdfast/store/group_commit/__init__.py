"""Group commit."""
