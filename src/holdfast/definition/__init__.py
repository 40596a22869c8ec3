"""Workflow files and `holdfast.yaml`: YAML or JSON, read with the position of each mistake.

Imports: project_file, workflow_file → project_agents, steps, text_file → agent_use, composer,
own_presets, schema → values → command_text, key_names, lexer, types → quotes → findings →
called_files, diagram, keys, nodes.

- `agent_use` the preset of an agent, and what its program cannot do
- `called_files` workflows in files beside the file that calls them
- `command_text` the list to write instead of a command in one text
- `composer` nodes built from the tokens of a text, within bounds
- `diagram` the graph of a workflow as lines of plain text
- `findings` the mistakes found in one file
- `key_names` the names of keys in other tools
- `keys` the table of all keys of a workflow file
- `lexer` tokens of a YAML or JSON text
- `nodes` values of a file with their positions
- `own_presets` the presets in `holdfast.yaml`
- `project_agents` the agents in `holdfast.yaml`, and their commands
- `project_file` the settings in `holdfast.yaml`
- `quotes` words as YAML needs them written
- `schema` the table of keys as a JSON Schema, and as a page
- `steps` the steps of a file, and the settings of their agents
- `text_file` the text of a file, and the nodes in it
- `types` types of inputs and outputs, in short forms or JSON Schema
- `values` values of keys, read by their kinds
- `workflow_file` a workflow file read into a workflow
"""
