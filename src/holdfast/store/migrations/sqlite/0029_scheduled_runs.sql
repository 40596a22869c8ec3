-- The time before which nothing of a run starts: until then the run is on hold `scheduled`.
ALTER TABLE holdfast_run ADD COLUMN scheduled_for INTEGER;

CREATE INDEX holdfast_run_scheduled ON holdfast_run (scheduled_for)
  WHERE (holds & 256) <> 0 AND status = 'running';
