-- name: insert_traces
-- purpose: Insert the traces that runs and tasks were started with
-- guards: A trace that is stored already stays
-- rows: root text, trace text, cause text, matter text
INSERT INTO holdfast_trace (entity, trace_id, causation_id, correlation_id)
SELECT r.root, r.trace, r.cause, r.matter FROM {rows} AS r WHERE true
ON CONFLICT (entity) DO NOTHING

-- name: trace_of
-- purpose: Read the trace id that a run or a task without a run was started with
SELECT trace_id FROM holdfast_trace WHERE entity = :entity

-- name: newest_number
-- purpose: Read the newest event number and message number, where a group without history begins
SELECT COALESCE((SELECT max(seq) FROM holdfast_event), 0) AS event,
  COALESCE((SELECT max(seq) FROM holdfast_message), 0) AS message

-- name: events_from
-- purpose: Read the next events after a number, and those in the holes before it, with step, agent and trace
-- rows: low integer, high integer
-- Step, agent and trace are looked up for each event: a join would read all tasks for a few events.
WITH found AS (
  SELECT * FROM (SELECT * FROM holdfast_event WHERE seq > :passed ORDER BY seq LIMIT :count) AS newer
  UNION ALL
  SELECT event.* FROM {rows} AS r JOIN holdfast_event AS event ON event.seq BETWEEN r.low AND r.high)
SELECT found.*,
  (SELECT task.step FROM holdfast_task AS task WHERE task.id = found.entity) AS step,
  (SELECT task.agent FROM holdfast_task AS task WHERE task.id = found.entity) AS agent,
  (SELECT trace_id FROM holdfast_trace WHERE entity = COALESCE(found.run_id, found.entity)) AS trace_id,
  (SELECT causation_id FROM holdfast_trace WHERE entity = COALESCE(found.run_id, found.entity)) AS causation_id,
  (SELECT correlation_id FROM holdfast_trace WHERE entity = COALESCE(found.run_id, found.entity)) AS correlation_id
FROM found
ORDER BY found.seq

-- name: messages_from
-- purpose: Read the next messages after a number, and those in the holes; other channels give numbers only
-- rows: low integer, high integer
WITH found AS (
  SELECT * FROM (SELECT * FROM holdfast_message WHERE seq > :passed ORDER BY seq LIMIT :count) AS newer
  UNION ALL
  SELECT message.* FROM {rows} AS r JOIN holdfast_message AS message ON message.seq BETWEEN r.low AND r.high)
SELECT seq, CASE WHEN channel = :channel THEN envelope END AS envelope FROM found
ORDER BY seq

-- name: latest_messages
-- purpose: Read the newest messages of a channel
SELECT envelope FROM holdfast_message WHERE channel = :channel ORDER BY seq DESC LIMIT :count

-- name: publish_messages
-- purpose: Publish messages on a channel
-- guards: The channel does not have a message of that id yet
-- rows: message text, body text
INSERT INTO holdfast_message (channel, message_id, envelope, published_at)
SELECT :channel, r.message, r.body, (SELECT holdfast_now()) FROM {rows} AS r WHERE true
ON CONFLICT (channel, message_id) DO NOTHING

-- name: insert_positions
-- purpose: Create the positions of a consumer group on a channel, one for each partition
-- guards: A position that exists stays as it is
-- rows: partition integer
INSERT INTO holdfast_position (channel, consumers, place, passed, holes)
SELECT :channel, :consumers, r.partition, :passed, :holes FROM {rows} AS r WHERE true
ON CONFLICT (channel, consumers, place) DO NOTHING

-- name: positions_of
-- purpose: Read the position of a consumer group in each partition of a channel
SELECT place, passed, holes, version FROM holdfast_position
WHERE channel = :channel
  AND consumers = :consumers
ORDER BY place

-- name: begin_relay
-- purpose: Create the positions of a relay, or restore those that a forgotten relay had
-- guards: A position that exists stays as it is
-- rows: partition integer
INSERT INTO holdfast_position (channel, consumers, place, passed, holes, version)
SELECT :channel, :consumers, r.partition, COALESCE(kept.passed, 0), COALESCE(kept.holes, '[]'), COALESCE(kept.version, 0) + 1
FROM {rows} AS r
LEFT JOIN holdfast_position AS kept ON kept.channel = :forgotten AND kept.consumers = :consumers AND kept.place = r.partition
WHERE true
ON CONFLICT (channel, consumers, place) DO NOTHING

-- name: groups_of
-- purpose: List the consumer groups of a channel
SELECT DISTINCT consumers FROM holdfast_position WHERE channel = :channel ORDER BY consumers

-- name: move_positions
-- purpose: Move the positions of a consumer group past the messages that the group has handled
-- guards: The version of the position is the one that the group read
-- rows: partition integer, seen integer
UPDATE holdfast_position SET passed = :passed, holes = :holes, version = version + 1
FROM {rows} AS r
WHERE holdfast_position.channel = :channel
  AND holdfast_position.consumers = :consumers
  AND holdfast_position.place = r.partition
  AND holdfast_position.version = r.seen
RETURNING place

-- name: set_positions
-- purpose: Move a consumer group back to a number for a replay; holes stay, so late commits still arrive
-- guards: The position belongs to this group on this channel
UPDATE holdfast_position SET version = version + 1,
  passed = CASE WHEN passed > :passed THEN :passed ELSE passed END
WHERE channel = :channel
  AND consumers = :consumers
RETURNING place

-- name: remove_positions
-- purpose: Delete the positions of a consumer group, so that no messages are kept for the group
-- guards: The position belongs to this group on this channel
DELETE FROM holdfast_position
WHERE channel = :channel
  AND consumers = :consumers

-- name: remove_relay
-- purpose: Delete the positions of a stopped relay; with the last relay, also those of the external groups
-- guards: No process holds the lease of the relay
DELETE FROM holdfast_position
WHERE channel = 'workflow.events'
  AND (consumers = :relay OR (consumers LIKE 'elsewhere/%' AND NOT EXISTS (
    SELECT 1 FROM holdfast_position AS other
    WHERE other.channel = 'workflow.events'
      AND other.consumers LIKE 'relay/%'
      AND other.consumers <> :relay)))
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_lease AS held
    WHERE held.key = :lease
      AND held.expires_at > (SELECT holdfast_now()))
RETURNING consumers, place, passed, holes, version

-- name: keep_forgotten
-- purpose: Store the position of a removed relay, for its return; no messages are kept for this position
-- guards: Each partition has one stored position, and the newest replaces it
-- rows: partition integer, number integer, missed text, seen integer
INSERT INTO holdfast_position (channel, consumers, place, passed, holes, version)
SELECT :forgotten, :relay, r.partition, r.number, r.missed, r.seen FROM {rows} AS r WHERE true
ON CONFLICT (channel, consumers, place)
DO UPDATE SET passed = excluded.passed, holes = excluded.holes, version = excluded.version

-- name: count_after
-- purpose: Count the messages of a channel after a number; for events, those of all partitions
SELECT CASE WHEN :channel = 'workflow.events'
  THEN (SELECT count(*) FROM holdfast_event WHERE seq > :passed)
  ELSE (SELECT count(*) FROM holdfast_message WHERE seq > :passed AND channel = :channel) END AS count

-- name: number_since
-- purpose: Find the last number before a moment, from which a replay reads
SELECT COALESCE(CASE WHEN :channel = 'workflow.events'
  THEN (SELECT min(seq) FROM holdfast_event WHERE at >= :moment)
  ELSE (SELECT min(seq) FROM holdfast_message WHERE published_at >= :moment) END - 1,
  CASE WHEN :channel = 'workflow.events'
  THEN (SELECT max(seq) FROM holdfast_event)
  ELSE (SELECT max(seq) FROM holdfast_message) END, 0) AS number

-- name: trim_messages
-- purpose: Delete the messages of a channel that every consumer group has passed
-- guards: The message is older than the retention, every group has passed it, and no group has a hole
DELETE FROM holdfast_message
WHERE channel = :channel
  AND published_at < :before
  AND seq <= (
    SELECT min(passed) FROM holdfast_position AS at
    WHERE at.channel = :channel)
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_position AS at
    WHERE at.channel = :channel
      AND at.holes <> '[]')
RETURNING seq

-- name: claim_messages
-- purpose: Record messages as processed by handlers, in the transaction of the handlers' effects
-- guards: The handler has not processed the message yet
-- rows: message text, handled_by text, run text, trace text
INSERT INTO holdfast_processed_message (message_id, handler, run_id, trace_id, processed_at)
SELECT r.message, r.handled_by, r.run, r.trace, (SELECT holdfast_now()) FROM {rows} AS r WHERE true
ON CONFLICT (message_id, handler) DO NOTHING
RETURNING message_id, handler

-- name: oldest_unread
-- purpose: Find the time of the oldest event or message that some consumer group or relay has not passed
SELECT min(at) AS at FROM (
  SELECT min(event.at) AS at FROM holdfast_event AS event
  WHERE event.seq > (SELECT passed FROM holdfast_read_by_all)
  UNION ALL
  SELECT min(message.published_at) FROM holdfast_message AS message
  WHERE message.seq > (
    SELECT min(reader.passed) FROM holdfast_position AS reader
    WHERE reader.channel = message.channel AND reader.consumers NOT LIKE 'elsewhere/%')) AS unread

-- name: purge_processed
-- purpose: Delete old records of processed messages that cannot be delivered again
-- guards: The record is older than any message that can still be delivered
DELETE FROM holdfast_processed_message
WHERE (message_id, handler) IN (
  SELECT message_id, handler FROM holdfast_processed_message
  WHERE processed_at < :before
  ORDER BY processed_at LIMIT :count)
RETURNING message_id

-- name: held_orders
-- purpose: List the handlers and subjects, of some given, that have a failed message stored
SELECT DISTINCT handler, about FROM holdfast_delivery
WHERE handler IN (SELECT value FROM {each handlers})
  AND about IN (SELECT value FROM {each matters})

-- name: hold_messages
-- purpose: Store failed messages for a retry, and later messages of the same subject that must wait
-- guards: The handler has neither stored nor processed the message yet
-- rows: handled_by text, message text, order_of text, part integer, body text, failed integer, wait integer, said text
INSERT INTO holdfast_delivery (handler, message_id, channel, about, slot, envelope, tries, due_at, parked_at, error)
SELECT r.handled_by, r.message, :channel, r.order_of, r.part, r.body, r.failed,
  CASE WHEN r.failed > 0 AND r.failed < :most THEN (SELECT holdfast_now()) + r.wait END,
  CASE WHEN r.failed >= :most THEN (SELECT holdfast_now()) END, r.said
FROM {rows} AS r
WHERE NOT EXISTS (
  SELECT 1 FROM holdfast_processed_message AS known
  WHERE known.message_id = r.message
    AND known.handler = r.handled_by)
ON CONFLICT (handler, message_id) DO NOTHING

-- name: due_deliveries
-- purpose: List the stored messages that are due for a retry, the first of each handler and subject
SELECT arrival, handler, message_id, about, envelope, tries FROM holdfast_delivery
WHERE channel = :channel
  AND handler IN (SELECT value FROM {each handlers})
  AND CAST(slot AS text) IN (SELECT value FROM {each slots})
  AND parked_at IS NULL
  AND (due_at IS NULL OR due_at <= (SELECT holdfast_now()))
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_delivery AS earlier
    WHERE earlier.handler = holdfast_delivery.handler
      AND earlier.about = holdfast_delivery.about
      AND earlier.arrival < holdfast_delivery.arrival)
ORDER BY arrival LIMIT :count

-- name: some_delivery
-- purpose: Tell whether any message waits for a retry, now or later; parked messages and their followers aside
SELECT arrival FROM holdfast_delivery
WHERE channel = :channel
  AND handler IN (SELECT value FROM {each handlers})
  AND parked_at IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_delivery AS earlier
    WHERE earlier.handler = holdfast_delivery.handler
      AND earlier.about = holdfast_delivery.about
      AND earlier.arrival < holdfast_delivery.arrival)
LIMIT 1

-- name: remove_delivery
-- purpose: Delete a stored message that its handler has processed
-- guards: The row is that message of that handler
DELETE FROM holdfast_delivery
WHERE handler = :handler
  AND message_id = :message_id

-- name: remove_deliveries
-- purpose: Delete all stored messages of the handlers of a removed consumer group
-- guards: The message is on that channel and for one of those handlers
DELETE FROM holdfast_delivery
WHERE channel = :channel
  AND handler IN (SELECT value FROM {each handlers})

-- name: note_failure
-- purpose: Record a failed retry: schedule the next try of a message, or park it after too many
-- guards: The row is that message of that handler, and no other process has recorded a try meanwhile
UPDATE holdfast_delivery SET tries = tries + 1, error = :error,
  due_at = CASE WHEN tries + 1 < :most THEN (SELECT holdfast_now()) + :wait END,
  parked_at = CASE WHEN tries + 1 >= :most THEN (SELECT holdfast_now()) END
WHERE handler = :handler
  AND message_id = :message_id
  AND tries = :tries
RETURNING tries, parked_at

-- name: list_deliveries
-- purpose: List failed messages and those behind them in order, or only parked ones and those being replayed
SELECT arrival, handler, message_id, channel, about, envelope, tries, due_at, parked_at, error
FROM holdfast_delivery
WHERE arrival > :passed
  AND (NOT :parked OR parked_at IS NOT NULL OR (tries = 0 AND error IS NOT NULL))
ORDER BY arrival LIMIT :count

-- name: count_deliveries
-- purpose: Count the stored and the parked messages of each handler and channel
SELECT channel, handler, count(*) AS waiting, count(parked_at) AS parked
FROM holdfast_delivery
GROUP BY channel, handler

-- name: replay_parked
-- purpose: Retry a parked message now, with a full budget of tries
-- guards: The message is parked
UPDATE holdfast_delivery SET parked_at = NULL, due_at = (SELECT holdfast_now()), tries = 0
WHERE handler = :handler
  AND message_id = :message_id
  AND parked_at IS NOT NULL
RETURNING message_id

-- name: drop_parked
-- purpose: Drop a parked message, so that the messages behind it continue
-- guards: The message is parked
DELETE FROM holdfast_delivery
WHERE handler = :handler
  AND message_id = :message_id
  AND parked_at IS NOT NULL
RETURNING message_id, envelope

-- name: note_dropped
-- purpose: Record a dropped message as processed, so that a second delivery of the message is ignored
-- guards: The handler has no record of the message yet
INSERT INTO holdfast_processed_message (message_id, handler, run_id, trace_id, processed_at, dropped)
VALUES (:message_id, :handler, :run_id, :trace_id, (SELECT holdfast_now()), true)
ON CONFLICT (message_id, handler) DO NOTHING

-- name: live_leases
-- purpose: List the holders of the named leases whose keys share a prefix
SELECT key, owner, fence, held_since FROM holdfast_lease
WHERE key >= :first
  AND key < :last
  AND expires_at > (SELECT holdfast_now())
ORDER BY key

-- name: ready_tasks
-- purpose: List the first ready tasks of some agents in claim order, for the offers on agent.tasks
SELECT task.id, task.run_id, task.step, task.agent, task.title, task.tags, task.priority, task.version,
  trace.trace_id, trace.correlation_id
FROM holdfast_task AS task
LEFT JOIN holdfast_trace AS trace ON trace.entity = COALESCE(task.run_id, task.id)
WHERE task.status = 'queued'
  AND task.kind = 'work'
  AND NOT task.blocked
  AND task.holds = 0
  AND task.run_holds = 0
  AND task.due
  AND NOT task.parked
  AND task.agent IN (SELECT value FROM {each agents})
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_limit AS reached
    WHERE reached.agent = task.agent AND reached.until > (SELECT holdfast_now()))
ORDER BY task.run_now DESC, task.priority DESC, task.position, task.id LIMIT :count
