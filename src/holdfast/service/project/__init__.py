"""The project around a folder: its settings, its store and the address of its server.

Import order: project, server_address; neither imports the other.

- `project`  the settings of a project, its home and the location of its store
- `server_address`  the address of the server of a store, in a file beside the store
"""
