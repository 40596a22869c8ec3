-- The same as before, without a text put together for each row.
DROP TRIGGER holdfast_task_guard ON holdfast_task;
CREATE TRIGGER holdfast_task_guard BEFORE UPDATE OF status, generation ON holdfast_task
FOR EACH ROW WHEN (NEW.status <> OLD.status AND CASE OLD.status
  WHEN 'idle' THEN false
  WHEN 'queued' THEN false
  WHEN 'running' THEN NEW.status = 'idle'
  ELSE NEW.status NOT IN ('idle', 'queued') OR NEW.generation <> OLD.generation + 1 END)
EXECUTE FUNCTION holdfast_refuse('task');

DROP TRIGGER holdfast_run_guard ON holdfast_run;
CREATE TRIGGER holdfast_run_guard BEFORE UPDATE OF status, generation ON holdfast_run
FOR EACH ROW WHEN (NEW.status <> OLD.status AND CASE OLD.status
  WHEN 'running' THEN false
  ELSE NEW.status <> 'running' OR NEW.generation <> OLD.generation + 1 END)
EXECUTE FUNCTION holdfast_refuse('run');

-- Only lists ask for the time too; a column that changes would have every change rewrite the entry.
DROP INDEX holdfast_run_status;
CREATE INDEX holdfast_run_status ON holdfast_run (status, id) WHERE created_at >= 0;
DROP INDEX holdfast_task_status;
CREATE INDEX holdfast_task_status ON holdfast_task (status, id)
  WHERE status IN ('idle', 'queued', 'failed', 'cancelled') AND created_at >= 0;

-- Mostly empty: who finds nothing here may claim without a look at who is first in line.
CREATE INDEX holdfast_task_keyed ON holdfast_task (agent)
  WHERE concurrency_key IS NOT NULL AND status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due;
