-- name: events_by_type
-- purpose: Count the events of each type between two numbers
SELECT type, count(*) AS events FROM holdfast_event
WHERE seq > :after
  AND seq <= :until
GROUP BY type
ORDER BY type

-- name: newest_dispatches
-- purpose: Read how long the newest claimed tasks had been ready, between two event numbers
-- A task that was started as its last need was done did not wait at all.
SELECT CASE WHEN started.data LIKE '%"blocked":false%' THEN 0
  WHEN task.scheduled_for > before.at THEN started.at - task.scheduled_for
  ELSE started.at - before.at END AS waited
FROM (
  SELECT entity, version, at, data FROM holdfast_event
  WHERE seq > :after
    AND seq <= :until
    AND type = 'task.running'
  ORDER BY seq DESC LIMIT :count) AS started
JOIN holdfast_event AS before ON before.entity = started.entity AND before.version = started.version - 1
JOIN holdfast_task AS task ON task.id = started.entity

-- name: places_of_groups
-- purpose: Read the lowest position of every consumer group of every channel
SELECT channel, consumers, min(passed) AS passed FROM holdfast_position
GROUP BY channel, consumers
ORDER BY channel, consumers

-- name: some_messages_after
-- purpose: Count the messages of a channel after a number, up to a limit
SELECT count(*) AS messages FROM (
  SELECT 1 AS one FROM holdfast_message
  WHERE seq > :passed
    AND channel = :channel
  LIMIT :count) AS found

-- name: parked_by_handler
-- purpose: Count the parked messages of each handler
SELECT handler, count(*) AS messages FROM holdfast_delivery
WHERE parked_at IS NOT NULL
GROUP BY handler
ORDER BY handler
