"""The project around a folder: its settings, its store and the address of its server.

Import order: agent_programs, project, server_address; none imports another.

- `agent_programs`  the programs of presets on this machine, and the command lines of agents
- `project`  the settings of a project, its home and the location of its store
- `server_address`  the address of the server of a store, in a file beside the store
"""
