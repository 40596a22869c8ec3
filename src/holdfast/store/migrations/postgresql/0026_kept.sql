-- How much attempts keep, in effects and the files beside them: of a task under the number of its
-- attempt, and of a run or lone task under 0. It is counted where they are kept, so that none is missed.
CREATE TABLE holdfast_kept (
  owner text COLLATE "C" NOT NULL,
  attempt integer NOT NULL,
  effects bigint NOT NULL,
  bytes bigint NOT NULL,
  PRIMARY KEY (owner, attempt)
);

-- Where it is not the length of the value: that, and what is kept beside it.
ALTER TABLE holdfast_effect ADD COLUMN size bigint;

INSERT INTO holdfast_kept (owner, attempt, effects, bytes)
SELECT task_id, attempt, count(*), sum(octet_length(value)) FROM holdfast_effect GROUP BY task_id, attempt
UNION ALL
SELECT COALESCE(task.run_id, task.id), 0, count(*), sum(octet_length(effect.value))
FROM holdfast_effect AS effect JOIN holdfast_task AS task ON task.id = effect.task_id
GROUP BY COALESCE(task.run_id, task.id);

CREATE FUNCTION holdfast_count_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO holdfast_kept AS kept (owner, attempt, effects, bytes)
  SELECT owner, number, 1, COALESCE(NEW.size, octet_length(NEW.value))
  FROM holdfast_task AS task
    CROSS JOIN LATERAL (VALUES (task.id, NEW.attempt), (COALESCE(task.run_id, task.id), 0)) AS of (owner, number)
  WHERE task.id = NEW.task_id
  ON CONFLICT (owner, attempt) DO UPDATE SET effects = kept.effects + 1, bytes = kept.bytes + excluded.bytes;
  RETURN NULL;
END
$$;

CREATE TRIGGER holdfast_effect_kept AFTER INSERT ON holdfast_effect
FOR EACH ROW EXECUTE FUNCTION holdfast_count_kept();

CREATE FUNCTION holdfast_forget_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM holdfast_kept WHERE owner = OLD.id;
  RETURN NULL;
END
$$;

CREATE TRIGGER holdfast_task_kept AFTER DELETE ON holdfast_task
FOR EACH ROW EXECUTE FUNCTION holdfast_forget_kept();

CREATE TRIGGER holdfast_run_kept AFTER DELETE ON holdfast_run
FOR EACH ROW EXECUTE FUNCTION holdfast_forget_kept();
