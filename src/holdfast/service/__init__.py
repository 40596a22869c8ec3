"""The service of a store: the one interface that every front end calls.

Import order: async_service → service → protocol → admin, commands → queries, project.

- `admin`  administration of a store: access, audit, backups, moves, cleanup, health and the bus
- `async_service`  the most frequent calls of a server, without a thread for each call
- `commands`  changes that front ends ask for, and their refusals
- `project`  the settings of a project, its store and the address of its server
- `protocol`  the worker's protocol: claims, reports, long polls and remote workers
- `queries`  reads for front ends, as JSON
- `service`  the service of one store, whose parts are made when first used
"""
