-- Money is counted in millionths of a dollar. What the attempts before the present one used:
ALTER TABLE holdfast_task ADD COLUMN spent bigint NOT NULL DEFAULT 0;

ALTER TABLE holdfast_run ADD COLUMN budget_usd bigint;
ALTER TABLE holdfast_run ADD COLUMN budget_usd_per_attempt bigint;
ALTER TABLE holdfast_run ADD COLUMN budget_attempts bigint;
ALTER TABLE holdfast_run ADD COLUMN time_limit bigint;
ALTER TABLE holdfast_run ADD COLUMN deadline bigint;

CREATE INDEX holdfast_run_deadline ON holdfast_run (deadline)
  WHERE deadline IS NOT NULL AND status = 'running';
