-- Only of what was started with a trace from outside; every other has the trace of its own id.
CREATE TABLE holdfast_trace (
  entity TEXT PRIMARY KEY,
  trace_id TEXT NOT NULL,
  causation_id TEXT,
  correlation_id TEXT
) STRICT, WITHOUT ROWID;

-- What was published on a channel; the events are there already and are not copied.
CREATE TABLE holdfast_message (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  channel TEXT NOT NULL,
  message_id TEXT NOT NULL,
  envelope TEXT NOT NULL,
  published_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX holdfast_message_once ON holdfast_message (channel, message_id);

-- How far a group has come; holes are the numbers it passed by before they were committed.
CREATE TABLE holdfast_position (
  channel TEXT NOT NULL,
  consumers TEXT NOT NULL,
  place INTEGER NOT NULL,
  passed INTEGER NOT NULL,
  holes TEXT NOT NULL DEFAULT '[]',
  version INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (channel, consumers, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_processed_message (
  message_id TEXT NOT NULL,
  handler TEXT NOT NULL,
  run_id TEXT,
  trace_id TEXT NOT NULL,
  processed_at INTEGER NOT NULL,
  dropped INTEGER NOT NULL DEFAULT 0 CHECK (dropped IN (0, 1)),
  PRIMARY KEY (message_id, handler)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_processed_message_age ON holdfast_processed_message (processed_at);

-- What a handler failed on, and what must wait behind that in its order.
CREATE TABLE holdfast_delivery (
  arrival INTEGER PRIMARY KEY AUTOINCREMENT,
  handler TEXT NOT NULL,
  message_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  about TEXT NOT NULL,
  slot INTEGER NOT NULL,
  envelope TEXT NOT NULL,
  tries INTEGER NOT NULL,
  due_at INTEGER,
  parked_at INTEGER,
  error TEXT
) STRICT;

CREATE UNIQUE INDEX holdfast_delivery_once ON holdfast_delivery (handler, message_id);
CREATE INDEX holdfast_delivery_order ON holdfast_delivery (handler, about, arrival);
