"""The MCP server: the service as tools, which agents choose by the descriptions of the tools.

Import order: endpoint → server → resources → operator_tools, planner_tools, read_tools,
worker_tools → tools → tool_words.

- `endpoint`  the tools over streamable HTTP, each call in the name of its caller
- `operator_tools`  tools that steer runs and judge what waits for a person
- `planner_tools`  tools that create, change and plan tasks
- `read_tools`  tools that read and change nothing
- `resources`  runs, tasks and logs as MCP resources
- `server`  the MCP server of a role, with the tools of that role
- `tool_words`  advice written as calls of tools
- `tools`  the base of all tools: their installation, fields, callers and errors
- `worker_tools`  tools that claim tasks and report on them
"""
