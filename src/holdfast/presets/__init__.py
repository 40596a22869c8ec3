"""Presets: the well-known agent command lines, with their flags and what their streams say.

Nothing here runs a program. Imports go down: `own_preset`, `catalogue`, the clients, `claude`,
`preset`, `stream_reader`, `agent_report`, `reset_times`.

- `own_preset` an agent command line that a project describes
- `catalogue` the presets of the well-known agent command lines, by name
- `aider` aider
- `claude` Claude Code, whose stream other clients have too
- `codex` Codex
- `copilot` Copilot CLI
- `cursor` Cursor, after its documentation
- `gemini` Gemini CLI
- `opencode` opencode
- `qwen` Qwen Code
- `preset` the flags of one client, and the command made of them
- `stream_reader` a stream read line by line
- `agent_report` what a stream has said so far
- `reset_times` when a usage limit lifts, found in a message
"""
