-- The attempts of a worker that are over while their functions still run, as JSON: each keeps a slot.
ALTER TABLE holdfast_worker ADD COLUMN overruns text;
