-- The lines of commits of runs, and of the items of loops that run in parallel: where each begins.
CREATE TABLE holdfast_line (
  id text PRIMARY KEY,
  run_id text NOT NULL REFERENCES holdfast_run (id) ON DELETE CASCADE,
  base text NOT NULL,
  repository text,
  host text,
  branch text,
  task_id text NOT NULL,
  attempt integer NOT NULL,
  created_at bigint NOT NULL
);

CREATE INDEX holdfast_line_run ON holdfast_line (run_id);
CREATE INDEX holdfast_line_host ON holdfast_line (host, run_id) WHERE host IS NOT NULL;

-- What attempts have committed: the numbered heads of a line (`anew` where the line of an item began
-- again at the head around it), the drafts that attempts gave back, and what others left.
CREATE TABLE holdfast_commit (
  task_id text NOT NULL REFERENCES holdfast_task (id) ON DELETE CASCADE,
  attempt integer NOT NULL,
  kind text NOT NULL CHECK (kind IN ('head', 'anew', 'draft', 'left')),
  line_id text NOT NULL REFERENCES holdfast_line (id) ON DELETE CASCADE,
  number integer,
  base text NOT NULL,
  sha text NOT NULL,
  generation integer NOT NULL,
  failures integer NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (task_id, attempt, kind),
  UNIQUE (line_id, number),
  CHECK ((number IS NULL) = (kind IN ('draft', 'left')))
);
