-- Up to where every reader has read the events, but for what may still come late: the groups in the
-- store, and the relays. What was relayed is kept for the groups on Redis that the store knows of,
-- until they have acknowledged it; while there is no relay, nothing has reached them.
CREATE OR REPLACE VIEW holdfast_read_by_all AS
SELECT min(passed) AS passed FROM (
  SELECT LEAST(reader.passed, (CAST(reader.holes AS json) -> 0 ->> 0)::bigint - 1) AS passed
  FROM holdfast_position AS reader
  WHERE reader.channel = 'workflow.events' AND reader.consumers NOT LIKE 'elsewhere/%'
    AND (reader.consumers NOT LIKE 'relay/%' OR reader.place = 0 OR EXISTS (
      SELECT 1 FROM holdfast_position AS far
      WHERE far.channel = 'workflow.events' AND far.consumers LIKE 'elsewhere/%'))
  UNION ALL
  SELECT 0 FROM holdfast_position AS reader
  WHERE reader.channel = 'workflow.events' AND reader.consumers LIKE 'elsewhere/%'
    AND NOT EXISTS (
      SELECT 1 FROM holdfast_position AS relay
      WHERE relay.channel = 'workflow.events' AND relay.consumers LIKE 'relay/%')) AS readers;

-- Mostly empty: what people deleted, until its events have been kept as long as those of other tasks.
CREATE INDEX holdfast_event_deleted ON holdfast_event (entity) WHERE type = 'task.deleted';

-- What nobody can ask for by its key is forgotten, some time after it was removed.
CREATE INDEX holdfast_tombstone_keyless ON holdfast_tombstone (removed_at) WHERE key IS NULL;
