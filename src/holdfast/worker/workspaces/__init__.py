"""Workspaces: the git worktrees in which attempts work, and the merges of what they commit.

Imports go down: `upkeep` | `merge_step`, `attempt_workspace`, then the rest.

- `attempt_workspace`  the worktree of one attempt, and the commit of what it left
- `copied_files`  files of a checkout that git does not track, brought into a worktree
- `line_repository`  the repository of a line of commits, here or at a URL
- `merge_step`  steps that merge a line into a branch, or an item into the line around it
- `port_blocks`  blocks of free ports
- `upkeep`  branches that follow their lines, and worktrees that nobody needs, removed
- `worktree_pool`  the worktrees of this machine, each lent to one attempt at a time
"""
