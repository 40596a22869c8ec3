ALTER TABLE holdfast_task ADD COLUMN waits_for TEXT;
ALTER TABLE holdfast_task ADD COLUMN parent_epoch INTEGER;
ALTER TABLE holdfast_task ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0
  CHECK (superseded IN (0, 1));

CREATE INDEX holdfast_task_waiting ON holdfast_task (waits_for) WHERE waits_for IS NOT NULL;
CREATE INDEX holdfast_task_open_child ON holdfast_task (parent_id)
  WHERE parent_id IS NOT NULL AND status IN ('idle', 'queued', 'running');

CREATE TABLE holdfast_effect (
  task_id TEXT NOT NULL REFERENCES holdfast_task (id) ON DELETE CASCADE,
  epoch INTEGER NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  recorded_at INTEGER NOT NULL,
  PRIMARY KEY (task_id, epoch, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_signal (
  id TEXT PRIMARY KEY,
  target TEXT NOT NULL,
  name TEXT NOT NULL,
  payload TEXT NOT NULL,
  key TEXT,
  sent_by TEXT NOT NULL,
  sent_at INTEGER NOT NULL,
  taken_by TEXT,
  taken_as TEXT,
  CHECK ((taken_by IS NULL) = (taken_as IS NULL))
) STRICT;

CREATE INDEX holdfast_signal_waiting ON holdfast_signal (target, name, id)
  WHERE taken_by IS NULL;
CREATE UNIQUE INDEX holdfast_signal_key ON holdfast_signal (target, name, key)
  WHERE key IS NOT NULL;
