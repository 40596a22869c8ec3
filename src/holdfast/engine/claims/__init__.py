"""Claims: the choice of tasks for workers.

Import order: standing_claims → picker.

- `picker`  the one place that decides which task a worker gets
- `standing_claims`  claims of this process that are served after every group
"""
