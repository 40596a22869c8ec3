-- Only of what was started with a trace from outside; every other has the trace of its own id.
CREATE TABLE holdfast_trace (
  entity text COLLATE "C" PRIMARY KEY,
  trace_id text COLLATE "C" NOT NULL,
  causation_id text COLLATE "C",
  correlation_id text COLLATE "C"
);

-- What was published on a channel; the events are there already and are not copied.
CREATE TABLE holdfast_message (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  channel text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  envelope text NOT NULL,
  published_at bigint NOT NULL
);

CREATE UNIQUE INDEX holdfast_message_once ON holdfast_message (channel, message_id);

-- How far a group has come; holes are the numbers it passed by before they were committed.
CREATE TABLE holdfast_position (
  channel text COLLATE "C" NOT NULL,
  consumers text COLLATE "C" NOT NULL,
  place integer NOT NULL,
  passed bigint NOT NULL,
  holes text NOT NULL DEFAULT '[]',
  version integer NOT NULL DEFAULT 1,
  PRIMARY KEY (channel, consumers, place)
);

CREATE TABLE holdfast_processed_message (
  message_id text COLLATE "C" NOT NULL,
  handler text COLLATE "C" NOT NULL,
  run_id text COLLATE "C",
  trace_id text COLLATE "C" NOT NULL,
  processed_at bigint NOT NULL,
  dropped boolean NOT NULL DEFAULT false,
  PRIMARY KEY (message_id, handler)
);

CREATE INDEX holdfast_processed_message_age ON holdfast_processed_message (processed_at);

-- What a handler failed on, and what must wait behind that in its order.
CREATE TABLE holdfast_delivery (
  arrival bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  handler text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  channel text COLLATE "C" NOT NULL,
  about text COLLATE "C" NOT NULL,
  slot integer NOT NULL,
  envelope text NOT NULL,
  tries integer NOT NULL,
  due_at bigint,
  parked_at bigint,
  error text
);

CREATE UNIQUE INDEX holdfast_delivery_once ON holdfast_delivery (handler, message_id);
CREATE INDEX holdfast_delivery_order ON holdfast_delivery (handler, about, arrival);
