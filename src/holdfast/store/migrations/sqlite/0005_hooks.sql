CREATE TABLE holdfast_hook (
  name TEXT PRIMARY KEY,
  events TEXT NOT NULL,
  about TEXT,
  template TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
