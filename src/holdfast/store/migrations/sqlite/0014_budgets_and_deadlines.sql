-- Money is counted in millionths of a dollar. What the attempts before the present one used:
ALTER TABLE holdfast_task ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;

ALTER TABLE holdfast_run ADD COLUMN budget_usd INTEGER;
ALTER TABLE holdfast_run ADD COLUMN budget_usd_per_attempt INTEGER;
ALTER TABLE holdfast_run ADD COLUMN budget_attempts INTEGER;
ALTER TABLE holdfast_run ADD COLUMN time_limit INTEGER;
ALTER TABLE holdfast_run ADD COLUMN deadline INTEGER;

CREATE INDEX holdfast_run_deadline ON holdfast_run (deadline)
  WHERE deadline IS NOT NULL AND status = 'running';
