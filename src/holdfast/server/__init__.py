"""The HTTP server: one gate, thin routes over the service, long polls and a stream of events."""
