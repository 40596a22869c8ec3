-- Whether anything is to be tried again is asked often, and must not look at all that is parked.
CREATE INDEX holdfast_delivery_waiting ON holdfast_delivery (channel, handler, about, arrival) WHERE parked_at IS NULL;

-- The name of a group on Redis tells the prefix of its streams; there was one for all of them.
UPDATE holdfast_position SET consumers = 'elsewhere/{holdfast}/' || substr(consumers, 11)
WHERE consumers LIKE 'elsewhere/%';
