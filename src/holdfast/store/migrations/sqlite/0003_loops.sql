ALTER TABLE holdfast_task ADD COLUMN item INTEGER;
ALTER TABLE holdfast_task ADD COLUMN total INTEGER;
ALTER TABLE holdfast_task ADD COLUMN made INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_task ADD COLUMN conditional INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_task ADD COLUMN gives INTEGER NOT NULL DEFAULT 1;
ALTER TABLE holdfast_task ADD COLUMN verifies TEXT;
ALTER TABLE holdfast_task ADD COLUMN round INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_task ADD COLUMN max_rounds INTEGER NOT NULL DEFAULT 1;
ALTER TABLE holdfast_task ADD COLUMN detours INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_task ADD COLUMN on_failure TEXT NOT NULL DEFAULT 'fail'
  CHECK (on_failure IN ('fail', 'skip', 'ask', 'goto'));
ALTER TABLE holdfast_task ADD COLUMN feedback TEXT;
ALTER TABLE holdfast_task ADD COLUMN question TEXT;

DROP INDEX holdfast_task_open_child;
CREATE INDEX holdfast_task_open_child ON holdfast_task (parent_id, status, position)
  WHERE parent_id IS NOT NULL AND status IN ('idle', 'queued', 'running');
CREATE INDEX holdfast_task_step ON holdfast_task (run_id, step)
  WHERE run_id IS NOT NULL AND parent_id IS NULL;
CREATE INDEX holdfast_task_failed_child ON holdfast_task (parent_id)
  WHERE parent_id IS NOT NULL AND status IN ('failed', 'cancelled');
