CREATE TABLE holdfast_access (
  name TEXT PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'worker', 'admin')),
  agents TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_pull (
  request TEXT PRIMARY KEY,
  taken TEXT NOT NULL,
  asked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_pull_age ON holdfast_pull (asked_at);
