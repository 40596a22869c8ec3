"""One execution bus for each place that can keep messages."""
