-- name: insert_traces
-- purpose: keep the traces that runs and tasks were started with
-- guards: the first stands
-- rows: root text, trace text, cause text, matter text
INSERT INTO holdfast_trace (entity, trace_id, causation_id, correlation_id)
SELECT r.root, r.trace, r.cause, r.matter FROM {rows} AS r WHERE true
ON CONFLICT (entity) DO NOTHING

-- name: trace_of
-- purpose: the trace that a run or a lone task was started with, if it was given one
SELECT trace_id FROM holdfast_trace WHERE entity = :entity

-- name: newest_number
-- purpose: where a group begins that wants nothing of the past
SELECT COALESCE((SELECT max(seq) FROM holdfast_event), 0) AS event,
  COALESCE((SELECT max(seq) FROM holdfast_message), 0) AS message

-- name: events_from
-- purpose: the next events after a number, and those in the holes before it, as they travel; what they
--   are about is looked up one by one, since a join would read all tasks there are for a few events
-- rows: low integer, high integer
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
-- purpose: the next messages after a number, and those in the holes before it; of another channel
--   their numbers alone
-- rows: low integer, high integer
WITH found AS (
  SELECT * FROM (SELECT * FROM holdfast_message WHERE seq > :passed ORDER BY seq LIMIT :count) AS newer
  UNION ALL
  SELECT message.* FROM {rows} AS r JOIN holdfast_message AS message ON message.seq BETWEEN r.low AND r.high)
SELECT seq, CASE WHEN channel = :channel THEN envelope END AS envelope FROM found
ORDER BY seq

-- name: latest_messages
-- purpose: the newest messages of a channel
SELECT envelope FROM holdfast_message WHERE channel = :channel ORDER BY seq DESC LIMIT :count

-- name: publish_messages
-- purpose: put messages on a channel
-- guards: each message once in its channel
-- rows: message text, body text
INSERT INTO holdfast_message (channel, message_id, envelope, published_at)
SELECT :channel, r.message, r.body, (SELECT holdfast_now()) FROM {rows} AS r WHERE true
ON CONFLICT (channel, message_id) DO NOTHING

-- name: insert_positions
-- purpose: begin a group on a channel
-- guards: a group that is there stays where it is
-- rows: partition integer
INSERT INTO holdfast_position (channel, consumers, place, passed, holes)
SELECT :channel, :consumers, r.partition, :passed, :holes FROM {rows} AS r WHERE true
ON CONFLICT (channel, consumers, place) DO NOTHING

-- name: positions_of
-- purpose: how far a group has come in each partition
SELECT place, passed, holes, version FROM holdfast_position
WHERE channel = :channel
  AND consumers = :consumers
ORDER BY place

-- name: begin_relay
-- purpose: begin a relay, or take one up that was forgotten where it stood
-- guards: a relay that is there stays where it is
-- rows: partition integer
INSERT INTO holdfast_position (channel, consumers, place, passed, holes, version)
SELECT :channel, :consumers, r.partition, COALESCE(kept.passed, 0), COALESCE(kept.holes, '[]'), COALESCE(kept.version, 0) + 1
FROM {rows} AS r
LEFT JOIN holdfast_position AS kept ON kept.channel = :forgotten AND kept.consumers = :consumers AND kept.place = r.partition
WHERE true
ON CONFLICT (channel, consumers, place) DO NOTHING

-- name: groups_of
-- purpose: the groups of a channel
SELECT DISTINCT consumers FROM holdfast_position WHERE channel = :channel ORDER BY consumers

-- name: move_positions
-- purpose: note that a group is done with what it read
-- guards: nobody has moved the group in these partitions since it read from there
-- rows: partition integer, seen integer
UPDATE holdfast_position SET passed = :passed, holes = :holes, version = version + 1
FROM {rows} AS r
WHERE holdfast_position.channel = :channel
  AND holdfast_position.consumers = :consumers
  AND holdfast_position.place = r.partition
  AND holdfast_position.version = r.seen
RETURNING place

-- name: set_positions
-- purpose: have a group read again from a point; what it has not been given yet, late commits too, still comes
-- guards: this group alone
UPDATE holdfast_position SET version = version + 1,
  passed = CASE WHEN passed > :passed THEN :passed ELSE passed END
WHERE channel = :channel
  AND consumers = :consumers
RETURNING place

-- name: remove_positions
-- purpose: end a group on a channel, so that nothing is kept for it
-- guards: this group alone
DELETE FROM holdfast_position
WHERE channel = :channel
  AND consumers = :consumers

-- name: remove_relay
-- purpose: end a relay that never runs again, and with the last of them the groups that they told
-- guards: nobody has its lease
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
-- purpose: remember where a relay stood, should it come back; no reader that anything is kept for
-- guards: one place for each, which is where it stood last
-- rows: partition integer, number integer, missed text, seen integer
INSERT INTO holdfast_position (channel, consumers, place, passed, holes, version)
SELECT :forgotten, :relay, r.partition, r.number, r.missed, r.seen FROM {rows} AS r WHERE true
ON CONFLICT (channel, consumers, place)
DO UPDATE SET passed = excluded.passed, holes = excluded.holes, version = excluded.version

-- name: count_after
-- purpose: how many messages of a channel come after a number; of events, whatever their partition
SELECT CASE WHEN :channel = 'workflow.events'
  THEN (SELECT count(*) FROM holdfast_event WHERE seq > :passed)
  ELSE (SELECT count(*) FROM holdfast_message WHERE seq > :passed AND channel = :channel) END AS count

-- name: number_since
-- purpose: the last number before a moment, from which on a group that is replayed reads
SELECT COALESCE(CASE WHEN :channel = 'workflow.events'
  THEN (SELECT min(seq) FROM holdfast_event WHERE at >= :moment)
  ELSE (SELECT min(seq) FROM holdfast_message WHERE published_at >= :moment) END - 1,
  CASE WHEN :channel = 'workflow.events'
  THEN (SELECT max(seq) FROM holdfast_event)
  ELSE (SELECT max(seq) FROM holdfast_message) END, 0) AS number

-- name: trim_messages
-- purpose: remove messages of a channel that every group of it has done with
-- guards: older than is to be kept; some group has them behind it, and none before it or in a hole
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
-- purpose: claim messages for handlers, with whose effects this stands or falls
-- guards: each message once for each handler
-- rows: message text, handled_by text, run text, trace text
INSERT INTO holdfast_processed_message (message_id, handler, run_id, trace_id, processed_at)
SELECT r.message, r.handled_by, r.run, r.trace, (SELECT holdfast_now()) FROM {rows} AS r WHERE true
ON CONFLICT (message_id, handler) DO NOTHING
RETURNING message_id, handler

-- name: oldest_unread
-- purpose: when the oldest event or message came that some group, or a relay, has not passed
SELECT min(at) AS at FROM (
  SELECT min(event.at) AS at FROM holdfast_event AS event
  WHERE event.seq > (SELECT passed FROM holdfast_read_by_all)
  UNION ALL
  SELECT min(message.published_at) FROM holdfast_message AS message
  WHERE message.seq > (
    SELECT min(reader.passed) FROM holdfast_position AS reader
    WHERE reader.channel = message.channel AND reader.consumers NOT LIKE 'elsewhere/%')) AS unread

-- name: purge_processed
-- purpose: forget that messages were done which nobody can be given again
-- guards: older than whatever may still be given to somebody
DELETE FROM holdfast_processed_message
WHERE (message_id, handler) IN (
  SELECT message_id, handler FROM holdfast_processed_message
  WHERE processed_at < :before
  ORDER BY processed_at LIMIT :count)
RETURNING message_id

-- name: held_orders
-- purpose: which orders, of some handlers and matters, wait for a message that failed
SELECT DISTINCT handler, about FROM holdfast_delivery
WHERE handler IN (SELECT value FROM {each handlers})
  AND about IN (SELECT value FROM {each matters})

-- name: hold_messages
-- purpose: keep messages that failed, and those that must wait behind one that did
-- guards: each message once for each handler, and none that the handler has done with
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
-- purpose: the first of each order that waits, when it is due again
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
-- purpose: whether anything is to be tried again, now or later; not what is parked, nor what waits behind that
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
-- purpose: let go of a message that was kept, when its handler has done with it
-- guards: this one alone
DELETE FROM holdfast_delivery
WHERE handler = :handler
  AND message_id = :message_id

-- name: remove_deliveries
-- purpose: let go of all that waits for the handlers of a group that is no more
-- guards: on the channel that it was on, and for its handlers alone
DELETE FROM holdfast_delivery
WHERE channel = :channel
  AND handler IN (SELECT value FROM {each handlers})

-- name: note_failure
-- purpose: have a message tried again later, or parked when it has failed too often
-- guards: this one alone, and not failed meanwhile in somebody else's hands
UPDATE holdfast_delivery SET tries = tries + 1, error = :error,
  due_at = CASE WHEN tries + 1 < :most THEN (SELECT holdfast_now()) + :wait END,
  parked_at = CASE WHEN tries + 1 >= :most THEN (SELECT holdfast_now()) END
WHERE handler = :handler
  AND message_id = :message_id
  AND tries = :tries
RETURNING tries, parked_at

-- name: list_deliveries
-- purpose: what failed and what waits behind it, in order; or of that only what is parked, or was
--   until somebody had it tried again
SELECT arrival, handler, message_id, channel, about, envelope, tries, due_at, parked_at, error
FROM holdfast_delivery
WHERE arrival > :passed
  AND (NOT :parked OR parked_at IS NOT NULL OR (tries = 0 AND error IS NOT NULL))
ORDER BY arrival LIMIT :count

-- name: count_deliveries
-- purpose: how much each handler of a channel has waiting, and how much of that is parked
SELECT channel, handler, count(*) AS waiting, count(parked_at) AS parked
FROM holdfast_delivery
GROUP BY channel, handler

-- name: replay_parked
-- purpose: have a parked message tried again, as often as a new one
-- guards: parked
UPDATE holdfast_delivery SET parked_at = NULL, due_at = (SELECT holdfast_now()), tries = 0
WHERE handler = :handler
  AND message_id = :message_id
  AND parked_at IS NOT NULL
RETURNING message_id

-- name: drop_parked
-- purpose: give up a parked message, so that what waits behind it goes on
-- guards: parked
DELETE FROM holdfast_delivery
WHERE handler = :handler
  AND message_id = :message_id
  AND parked_at IS NOT NULL
RETURNING message_id, envelope

-- name: note_dropped
-- purpose: remember that a message was given up, should it come again
-- guards: each message once for each handler
INSERT INTO holdfast_processed_message (message_id, handler, run_id, trace_id, processed_at, dropped)
VALUES (:message_id, :handler, :run_id, :trace_id, (SELECT holdfast_now()), true)
ON CONFLICT (message_id, handler) DO NOTHING

-- name: live_leases
-- purpose: who holds the named leases whose keys begin alike
SELECT key, owner, fence FROM holdfast_lease
WHERE key >= :first
  AND key < :last
  AND expires_at > (SELECT holdfast_now())
ORDER BY key

-- name: ready_tasks
-- purpose: the first tasks that agents could claim now, as they are offered
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
