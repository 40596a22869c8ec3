CREATE TABLE holdfast_browser (
  digest TEXT PRIMARY KEY,
  access TEXT NOT NULL,
  granted_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  entered_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_browser_end ON holdfast_browser (expires_at);
