"""Git: plain operations on repositories, which run no program of theirs.

Imports go down: `branch_moves` | `merges` | `patches`, `commits` | `diffs` | `shared_clones`,
`worktrees`, `references`, `repository` | `unfinished_work`, `repository_view`, `git_command`.

- `branch_moves`  a branch moved to a newer commit, and its clean checkout with it
- `commits`  the commit of what an attempt left
- `diffs`  patches and numbers of changed lines
- `git_command`  the program git, run with an environment that starts nothing else
- `merges`  two lines of commits brought together without any checkout
- `patches`  the text of a change as git writes it, read into files
- `references`  branches and kept commits, moved from where they are expected to be
- `repository`  a repository found by a path, its commits by name, its checkouts
- `repository_view`  the objects of a repository under settings that name no program
- `shared_clones`  the clones of URLs, fetches and pushes
- `unfinished_work`  records of what a killed process left half done
- `worktrees`  worktrees of attempts: made, handed over, removed
"""
