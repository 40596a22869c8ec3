CREATE TABLE holdfast_task (
  id text PRIMARY KEY,
  run_id text,
  title text NOT NULL CHECK (title <> 'bad'),
  status text NOT NULL,
  previous text,
  version integer NOT NULL DEFAULT 1,
  attempt integer NOT NULL DEFAULT 0,
  generation integer NOT NULL DEFAULT 1,
  changed_by text NOT NULL,
  changed_at integer NOT NULL
) WITHOUT ROWID;

CREATE TABLE holdfast_event (
  seq integer PRIMARY KEY AUTOINCREMENT,
  entity text NOT NULL,
  run_id text,
  version integer NOT NULL,
  type text NOT NULL,
  from_status text,
  to_status text,
  attempt integer NOT NULL,
  generation integer NOT NULL,
  actor text NOT NULL,
  at integer NOT NULL,
  data text,
  UNIQUE (entity, version)
);

CREATE TABLE note (text text NOT NULL UNIQUE);

CREATE TABLE reply (text text NOT NULL REFERENCES note (text) DEFERRABLE INITIALLY DEFERRED);
