-- A step that calls a workflow names it. The run that it starts knows the task and its epoch, the
-- run at the top of all that call each other, and how deep below that it is.
ALTER TABLE holdfast_task ADD COLUMN calls TEXT;
ALTER TABLE holdfast_run ADD COLUMN parent_id TEXT;
ALTER TABLE holdfast_run ADD COLUMN parent_epoch INTEGER;
ALTER TABLE holdfast_run ADD COLUMN root_id TEXT;
ALTER TABLE holdfast_run ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;

CREATE UNIQUE INDEX holdfast_run_parent ON holdfast_run (parent_id, parent_epoch)
  WHERE parent_id IS NOT NULL;
CREATE INDEX holdfast_task_calls ON holdfast_task (run_id) WHERE calls IS NOT NULL;
