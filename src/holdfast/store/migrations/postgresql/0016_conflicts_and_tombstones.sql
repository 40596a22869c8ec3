-- Mostly empty: how many there were is asked every few seconds.
CREATE INDEX holdfast_event_conflict ON holdfast_event (seq) WHERE type = 'run.conflict';

-- What is left of runs, and of tasks without one, that were kept as long as they are to be: what
-- keeps their keys from being used again, and tells what has become of them.
CREATE TABLE holdfast_tombstone (
  entity text PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('run', 'task')),
  name text NOT NULL,
  version text,
  key text,
  body_digest text NOT NULL,
  status text NOT NULL,
  created_at bigint NOT NULL,
  finished_at bigint,
  removed_at bigint NOT NULL
);

CREATE UNIQUE INDEX holdfast_tombstone_key ON holdfast_tombstone (kind, key) WHERE key IS NOT NULL;

-- What is removed takes with it whatever was sent to it.
CREATE INDEX holdfast_signal_target ON holdfast_signal (target);

-- Up to where every reader has read the events: the groups in the store, and the relays, with what
-- was acknowledged to them. While a group elsewhere has no relay, nothing has reached it.
CREATE VIEW holdfast_read_by_all AS
SELECT min(passed) AS passed FROM (
  SELECT CASE WHEN reader.holes = '[]' THEN reader.passed ELSE 0 END AS passed
  FROM holdfast_position AS reader
  WHERE reader.channel = 'workflow.events' AND reader.consumers NOT LIKE 'elsewhere/%'
  UNION ALL
  SELECT 0 FROM holdfast_position AS reader
  WHERE reader.channel = 'workflow.events' AND reader.consumers LIKE 'elsewhere/%'
    AND NOT EXISTS (
      SELECT 1 FROM holdfast_position AS relay
      WHERE relay.channel = 'workflow.events' AND relay.consumers LIKE 'relay/%')) AS readers;

-- The last number that was given to an event and to a message, whatever has become of those.
CREATE VIEW holdfast_last_number AS
SELECT COALESCE(pg_sequence_last_value('holdfast_event_seq_seq'::regclass), 0) AS event,
  COALESCE(pg_sequence_last_value('holdfast_message_seq_seq'::regclass), 0) AS message;
