ALTER TABLE holdfast_task ADD COLUMN waits_for text COLLATE "C";
ALTER TABLE holdfast_task ADD COLUMN parent_epoch integer;
ALTER TABLE holdfast_task ADD COLUMN superseded boolean NOT NULL DEFAULT false;

CREATE INDEX holdfast_task_waiting ON holdfast_task (waits_for) WHERE waits_for IS NOT NULL;
CREATE INDEX holdfast_task_open_child ON holdfast_task (parent_id)
  WHERE parent_id IS NOT NULL AND status IN ('idle', 'queued', 'running');

CREATE TABLE holdfast_effect (
  task_id text COLLATE "C" NOT NULL REFERENCES holdfast_task (id) ON DELETE CASCADE,
  epoch integer NOT NULL,
  name text COLLATE "C" NOT NULL,
  value text NOT NULL,
  attempt integer NOT NULL,
  recorded_at bigint NOT NULL,
  PRIMARY KEY (task_id, epoch, name)
);

CREATE TABLE holdfast_signal (
  id text COLLATE "C" PRIMARY KEY,
  target text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  payload text NOT NULL,
  key text COLLATE "C",
  sent_by text COLLATE "C" NOT NULL,
  sent_at bigint NOT NULL,
  taken_by text COLLATE "C",
  taken_as text COLLATE "C",
  CHECK ((taken_by IS NULL) = (taken_as IS NULL))
);

CREATE INDEX holdfast_signal_waiting ON holdfast_signal (target, name, id)
  WHERE taken_by IS NULL;
CREATE UNIQUE INDEX holdfast_signal_key ON holdfast_signal (target, name, key)
  WHERE key IS NOT NULL;
