-- Without a next tick it is paused. What it starts is a run of a workflow, or a task.
CREATE TABLE holdfast_schedule (
  name TEXT PRIMARY KEY,
  cron TEXT NOT NULL,
  zone TEXT NOT NULL,
  missed TEXT NOT NULL CHECK (missed IN ('skip', 'one', 'all')),
  workflow TEXT,
  workflow_version TEXT,
  template TEXT NOT NULL,
  input TEXT NOT NULL,
  run_id TEXT REFERENCES holdfast_run (id),
  body_digest TEXT NOT NULL,
  next_at INTEGER,
  last_at INTEGER,
  last_error TEXT,
  version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  FOREIGN KEY (workflow, workflow_version) REFERENCES holdfast_workflow (name, version),
  CHECK ((workflow IS NULL) = (workflow_version IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_schedule_due ON holdfast_schedule (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX holdfast_schedule_run ON holdfast_schedule (run_id) WHERE run_id IS NOT NULL;
