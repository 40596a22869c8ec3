-- name: event_writers
-- purpose: nobody has written what cannot be seen: commits take turns, in the order of events
SELECT '' AS writer WHERE false
