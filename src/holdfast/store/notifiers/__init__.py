"""One notifier for each way processes can hear of one another's commits."""
