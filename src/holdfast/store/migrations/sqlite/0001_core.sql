CREATE TABLE holdfast_meta (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO holdfast_meta (name, value) VALUES ('secret', lower(hex(randomblob(32))));

CREATE TABLE holdfast_workflow (
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  definition TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_slot (
  key TEXT PRIMARY KEY,
  capacity INTEGER NOT NULL CHECK (capacity >= 1),
  highest INTEGER NOT NULL,
  used INTEGER NOT NULL DEFAULT 0 CHECK (used >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_lease (
  key TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  fence INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_run (
  id TEXT PRIMARY KEY,
  workflow TEXT NOT NULL,
  workflow_version TEXT NOT NULL,
  key TEXT,
  body_digest TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled')),
  holds INTEGER NOT NULL DEFAULT 0,
  input TEXT NOT NULL,
  error TEXT,
  priority INTEGER NOT NULL DEFAULT 0,
  concurrency_key TEXT,
  version INTEGER NOT NULL DEFAULT 1,
  generation INTEGER NOT NULL DEFAULT 1,
  previous TEXT,
  changed_by TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER,
  FOREIGN KEY (workflow, workflow_version) REFERENCES holdfast_workflow (name, version),
  CHECK ((status = 'running') = (finished_at IS NULL))
) STRICT;

CREATE UNIQUE INDEX holdfast_run_key ON holdfast_run (key) WHERE key IS NOT NULL;
CREATE INDEX holdfast_run_waiting ON holdfast_run (concurrency_key, id)
  WHERE status = 'running' AND (holds & 32) <> 0;
-- Only lists ask for a version too: elsewhere this index would stand in for a better one.
CREATE INDEX holdfast_run_status ON holdfast_run (status, id) WHERE version >= 1;

CREATE TABLE holdfast_task (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL DEFAULT 'work' CHECK (kind IN ('work', 'group', 'approval')),
  run_id TEXT REFERENCES holdfast_run (id),
  parent_id TEXT REFERENCES holdfast_task (id),
  step TEXT,
  title TEXT NOT NULL,
  agent TEXT NOT NULL DEFAULT 'default',
  status TEXT NOT NULL
    CHECK (status IN ('idle', 'queued', 'running', 'done', 'failed', 'cancelled')),
  planning_phase TEXT NOT NULL DEFAULT 'none'
    CHECK (planning_phase IN ('none', 'active', 'finalized')),
  blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1)),
  holds INTEGER NOT NULL DEFAULT 0,
  run_holds INTEGER NOT NULL DEFAULT 0,
  held_until INTEGER,
  due INTEGER NOT NULL DEFAULT 1 CHECK (due IN (0, 1)),
  scheduled_for INTEGER,
  run_now INTEGER NOT NULL DEFAULT 0 CHECK (run_now IN (0, 1)),
  skipped INTEGER NOT NULL DEFAULT 0 CHECK (skipped IN (0, 1)),
  priority INTEGER NOT NULL DEFAULT 0,
  position INTEGER NOT NULL DEFAULT 0,
  tags TEXT NOT NULL DEFAULT '[]',
  key TEXT,
  body_digest TEXT NOT NULL,
  concurrency_key TEXT,
  attempt INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER NOT NULL,
  lost INTEGER NOT NULL DEFAULT 0,
  max_lost INTEGER NOT NULL,
  backoff INTEGER NOT NULL,
  backoff_max INTEGER NOT NULL,
  timeout INTEGER,
  generation INTEGER NOT NULL DEFAULT 1,
  epoch INTEGER NOT NULL DEFAULT 1,
  payload TEXT NOT NULL,
  output TEXT,
  result_digest TEXT,
  error TEXT,
  usage TEXT,
  progress TEXT,
  worker TEXT,
  lease_expires_at INTEGER,
  version INTEGER NOT NULL DEFAULT 1,
  previous TEXT,
  changed_by TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  CHECK ((status = 'running') = (lease_expires_at IS NOT NULL)),
  CHECK ((status IN ('done', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
  CHECK (failures <= max_attempts),
  CHECK (lost <= max_lost)
) STRICT;

CREATE UNIQUE INDEX holdfast_task_key ON holdfast_task (key) WHERE key IS NOT NULL;
CREATE INDEX holdfast_task_ready
  ON holdfast_task (agent, run_now DESC, priority DESC, position, id)
  WHERE status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due;
CREATE INDEX holdfast_task_scheduled ON holdfast_task (scheduled_for)
  WHERE status = 'queued' AND NOT due;
CREATE INDEX holdfast_task_unknown ON holdfast_task (id) WHERE (holds & 128) <> 0;
CREATE INDEX holdfast_task_held ON holdfast_task (held_until) WHERE held_until IS NOT NULL;
-- Only the sweep asks for an attempt too: beside a set of reports this index would be read whole.
CREATE INDEX holdfast_task_running ON holdfast_task (id)
  WHERE lease_expires_at IS NOT NULL AND attempt >= 1;
-- Without the two that tasks pass through by the million: `running` has its own, `done` is the rest.
CREATE INDEX holdfast_task_status ON holdfast_task (status, id)
  WHERE status IN ('idle', 'queued', 'failed', 'cancelled') AND version >= 1;
CREATE INDEX holdfast_task_unfinished ON holdfast_task (run_id, status)
  WHERE status <> 'done' AND run_id IS NOT NULL;
CREATE INDEX holdfast_task_run ON holdfast_task (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX holdfast_task_parent ON holdfast_task (parent_id, position)
  WHERE parent_id IS NOT NULL;

CREATE TABLE holdfast_need (
  task_id TEXT NOT NULL REFERENCES holdfast_task (id) ON DELETE CASCADE,
  need_id TEXT NOT NULL REFERENCES holdfast_task (id),
  since INTEGER NOT NULL,
  PRIMARY KEY (task_id, need_id),
  CHECK (task_id <> need_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_need_dependent ON holdfast_need (need_id, task_id);

CREATE TABLE holdfast_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  entity TEXT NOT NULL,
  run_id TEXT,
  version INTEGER NOT NULL,
  type TEXT NOT NULL,
  from_status TEXT,
  to_status TEXT,
  attempt INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  actor TEXT NOT NULL,
  at INTEGER NOT NULL,
  data TEXT
) STRICT;

CREATE UNIQUE INDEX holdfast_event_entity ON holdfast_event (entity, version);

CREATE TRIGGER holdfast_task_guard BEFORE UPDATE OF status, generation ON holdfast_task
WHEN NEW.status <> OLD.status AND (
  OLD.status || '>' || NEW.status NOT IN (
    'idle>queued', 'idle>running', 'idle>cancelled', 'idle>done', 'idle>failed',
    'queued>running', 'queued>cancelled', 'queued>idle', 'queued>done', 'queued>failed',
    'running>done', 'running>failed', 'running>cancelled', 'running>queued',
    'done>idle', 'done>queued', 'failed>idle', 'failed>queued',
    'cancelled>idle', 'cancelled>queued')
  OR (OLD.status IN ('done', 'failed', 'cancelled') AND NEW.generation <> OLD.generation + 1))
BEGIN
  SELECT RAISE(ABORT, 'holdfast: a task moves only along the transition table, and out of a terminal status only with generation + 1');
END;

CREATE TRIGGER holdfast_run_guard BEFORE UPDATE OF status, generation ON holdfast_run
WHEN NEW.status <> OLD.status AND (
  OLD.status || '>' || NEW.status NOT IN (
    'running>completed', 'running>failed', 'running>cancelled',
    'completed>running', 'failed>running', 'cancelled>running')
  OR (OLD.status <> 'running' AND NEW.generation <> OLD.generation + 1))
BEGIN
  SELECT RAISE(ABORT, 'holdfast: a run moves only along the transition table, and out of a terminal status only with generation + 1');
END;
