"""The HTTP server: one gate, thin routes over the service, long polls and a stream of events.

Import order: http_server → application → dashboard, fast_router, listener, routes → connection,
long_polls, request_context, route_table → gate → connection_limits, server_state → auth,
event_stream → exception_handlers → rest.

- `application`  the ASGI application: all routes behind the gate, and the OpenAPI document
- `auth`  recognition of callers, and limits on their rate and on wrong tokens
- `buffered_transport`  a transport that sends all writes of one pass of the loop together
- `connection`  one HTTP connection, with its limits of size and time
- `connection_limits`  limits on connections, and all open connections of a server
- `dashboard`  the built dashboard, sent from the package
- `event_stream`  the stream of new events, read once for all its readers
- `fast_router`  a shorter way to the most frequent calls, past the framework
- `gate`  the checks before every route: host, origin, token, rate and size
- `html_pages`  the few HTML pages for people
- `http_server`  the process that serves: socket, signals, draining
- `listen_address`  the address to listen on, refused beyond this machine unless allowed
- `listener`  acceptance of connections, and its pauses where descriptors run out
- `long_polls`  calls that wait for work, and what happens when their caller hangs up
- `open_calls`  streams and long polls, which end with the token they were made with
- `exception_handlers`  errors as RFC 9457 problems, and JSON answers
- `proxies`  proxies whose word on the address of a caller is believed
- `request_context`  the service in the name of the caller, for each route
- `route_table`  tables of routes with the roles that may call them, and their installation
- `routes`  the routes, one file for each noun
- `schemas`  the responses, for the OpenAPI document
- `server_state`  the objects that a server keeps while it serves
"""
