-- How much attempts keep, in effects and the files beside them: of a task under the number of its
-- attempt, and of a run or lone task under 0. It is counted where they are kept, so that none is missed.
CREATE TABLE holdfast_kept (
  owner TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  effects INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (owner, attempt)
) STRICT, WITHOUT ROWID;

-- Where it is not the length of the value: that, and what is kept beside it.
ALTER TABLE holdfast_effect ADD COLUMN size INTEGER;

INSERT INTO holdfast_kept (owner, attempt, effects, bytes)
SELECT task_id, attempt, count(*), sum(length(CAST(value AS BLOB))) FROM holdfast_effect GROUP BY task_id, attempt
UNION ALL
SELECT COALESCE(task.run_id, task.id), 0, count(*), sum(length(CAST(effect.value AS BLOB)))
FROM holdfast_effect AS effect JOIN holdfast_task AS task ON task.id = effect.task_id
GROUP BY COALESCE(task.run_id, task.id);

CREATE TRIGGER holdfast_effect_kept AFTER INSERT ON holdfast_effect
BEGIN
  INSERT INTO holdfast_kept (owner, attempt, effects, bytes)
  SELECT NEW.task_id, NEW.attempt, 1, COALESCE(NEW.size, length(CAST(NEW.value AS BLOB))) WHERE true
  ON CONFLICT (owner, attempt) DO UPDATE SET effects = effects + 1, bytes = bytes + excluded.bytes;
  INSERT INTO holdfast_kept (owner, attempt, effects, bytes)
  SELECT COALESCE(run_id, id), 0, 1, COALESCE(NEW.size, length(CAST(NEW.value AS BLOB)))
  FROM holdfast_task WHERE id = NEW.task_id
  ON CONFLICT (owner, attempt) DO UPDATE SET effects = effects + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER holdfast_task_kept AFTER DELETE ON holdfast_task
BEGIN
  DELETE FROM holdfast_kept WHERE owner = OLD.id;
END;

CREATE TRIGGER holdfast_run_kept AFTER DELETE ON holdfast_run
BEGIN
  DELETE FROM holdfast_kept WHERE owner = OLD.id;
END;
