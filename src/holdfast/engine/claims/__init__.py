"""Claims: the choice of tasks for workers.

Import order: standing_claims → picker → claim_requests.

- `claim_requests`  the same request again gets the same tasks
- `picker`  the one place that decides which task a worker gets
- `standing_claims`  claims of this process that are served after every group
"""
