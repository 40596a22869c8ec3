CREATE TABLE holdfast_worker (
  name TEXT PRIMARY KEY,
  agents TEXT NOT NULL,
  tags TEXT NOT NULL,
  concurrency INTEGER NOT NULL,
  told TEXT CHECK (told IN ('drain', 'evict')),
  started_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_stop (
  task_id TEXT NOT NULL REFERENCES holdfast_task (id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  stopped_at INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  remaining INTEGER NOT NULL,
  PRIMARY KEY (task_id, attempt)
) STRICT, WITHOUT ROWID;
