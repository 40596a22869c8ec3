"""The files of a worker, and the rules by which a folder `.holdfast` is trusted.

Imports go down: `state_directory` | `artifacts` | `attempt_log`, `homes`, then the rest.

- `artifacts`  files that attempts leave for others
- `attempt_log`  the log of one attempt
- `git_index`  whether git tracks a path
- `homes`  folders `.holdfast`: found, made, trusted or refused
- `home_registry`  the registry of the homes that this user made or trusts
- `state_directory`  the directory of a store's logs, artifacts and records of processes
- `state_paths`  paths below a state directory, opened through no symbolic link
"""
