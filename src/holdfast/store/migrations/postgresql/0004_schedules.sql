-- Without a next tick it is paused. What it starts is a run of a workflow, or a task.
CREATE TABLE holdfast_schedule (
  name text COLLATE "C" PRIMARY KEY,
  cron text COLLATE "C" NOT NULL,
  zone text COLLATE "C" NOT NULL,
  missed text COLLATE "C" NOT NULL CHECK (missed IN ('skip', 'one', 'all')),
  workflow text COLLATE "C",
  workflow_version text COLLATE "C",
  template text NOT NULL,
  input text NOT NULL,
  run_id text COLLATE "C" REFERENCES holdfast_run (id),
  body_digest text COLLATE "C" NOT NULL,
  next_at bigint,
  last_at bigint,
  last_error text,
  version integer NOT NULL DEFAULT 1,
  created_at bigint NOT NULL,
  FOREIGN KEY (workflow, workflow_version) REFERENCES holdfast_workflow (name, version),
  CHECK ((workflow IS NULL) = (workflow_version IS NULL))
);

CREATE INDEX holdfast_schedule_due ON holdfast_schedule (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX holdfast_schedule_run ON holdfast_schedule (run_id) WHERE run_id IS NOT NULL;
