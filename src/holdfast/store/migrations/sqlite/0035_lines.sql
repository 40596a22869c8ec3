-- The lines of commits of runs, and of the items of loops that run in parallel: where each begins.
CREATE TABLE holdfast_line (
  id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL REFERENCES holdfast_run (id) ON DELETE CASCADE,
  base TEXT NOT NULL,
  repository TEXT,
  host TEXT,
  branch TEXT,
  task_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_line_run ON holdfast_line (run_id);
CREATE INDEX holdfast_line_host ON holdfast_line (host, run_id) WHERE host IS NOT NULL;

-- What attempts have committed: the numbered heads of a line (`anew` where the line of an item began
-- again at the head around it), the drafts that attempts gave back, and what others left.
CREATE TABLE holdfast_commit (
  task_id TEXT NOT NULL REFERENCES holdfast_task (id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('head', 'anew', 'draft', 'left')),
  line_id TEXT NOT NULL REFERENCES holdfast_line (id) ON DELETE CASCADE,
  number INTEGER,
  base TEXT NOT NULL,
  sha TEXT NOT NULL,
  generation INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (task_id, attempt, kind),
  UNIQUE (line_id, number),
  CHECK ((number IS NULL) = (kind IN ('draft', 'left')))
) STRICT, WITHOUT ROWID;
