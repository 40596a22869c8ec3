-- Mostly empty: how many there were is asked every few seconds.
CREATE INDEX holdfast_event_conflict ON holdfast_event (seq) WHERE type = 'run.conflict';
