ALTER TABLE holdfast_task ADD COLUMN item integer;
ALTER TABLE holdfast_task ADD COLUMN total integer;
ALTER TABLE holdfast_task ADD COLUMN made integer NOT NULL DEFAULT 0;
ALTER TABLE holdfast_task ADD COLUMN conditional boolean NOT NULL DEFAULT false;
ALTER TABLE holdfast_task ADD COLUMN gives boolean NOT NULL DEFAULT true;
ALTER TABLE holdfast_task ADD COLUMN verifies text;
ALTER TABLE holdfast_task ADD COLUMN round integer NOT NULL DEFAULT 0;
ALTER TABLE holdfast_task ADD COLUMN max_rounds integer NOT NULL DEFAULT 1;
ALTER TABLE holdfast_task ADD COLUMN detours integer NOT NULL DEFAULT 0;
ALTER TABLE holdfast_task ADD COLUMN on_failure text NOT NULL DEFAULT 'fail'
  CHECK (on_failure IN ('fail', 'skip', 'ask', 'goto'));
ALTER TABLE holdfast_task ADD COLUMN feedback text;
ALTER TABLE holdfast_task ADD COLUMN question text;

DROP INDEX holdfast_task_open_child;
CREATE INDEX holdfast_task_open_child ON holdfast_task (parent_id, status, position)
  WHERE parent_id IS NOT NULL AND status IN ('idle', 'queued', 'running');
CREATE INDEX holdfast_task_step ON holdfast_task (run_id, step)
  WHERE run_id IS NOT NULL AND parent_id IS NULL;
CREATE INDEX holdfast_task_failed_child ON holdfast_task (parent_id)
  WHERE parent_id IS NOT NULL AND status IN ('failed', 'cancelled');
