-- Only lists ask for the time too: elsewhere this index would stand in for a better one.
CREATE INDEX holdfast_task_child ON holdfast_task (parent_id, id)
  WHERE parent_id IS NOT NULL AND created_at >= 0;

CREATE INDEX holdfast_workflow_created ON holdfast_workflow (created_at, name, version);

-- Which process a worker is, so that another on its machine can tell that it is dead.
ALTER TABLE holdfast_worker ADD COLUMN process TEXT;
-- Why it claims nothing just now.
ALTER TABLE holdfast_worker ADD COLUMN pausing TEXT;
