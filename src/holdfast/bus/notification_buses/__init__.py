"""One notification bus for each way there is between processes."""
