-- What attempts keep is counted once for all effects of a statement. A trigger for each of them took most
-- of the time in which effects were written.
CREATE FUNCTION holdfast_count_kept_together() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO holdfast_kept AS kept (owner, attempt, effects, bytes)
  SELECT owner, number, count(*), sum(each.bytes)
  FROM (
    -- Not by a join, for which every effect would be compared with every task.
    SELECT made.task_id, made.attempt, COALESCE(made.size, octet_length(made.value)) AS bytes,
      COALESCE((SELECT task.run_id FROM holdfast_task AS task WHERE task.id = made.task_id), made.task_id) AS whole
    FROM made) AS each
    CROSS JOIN LATERAL (VALUES (each.task_id, each.attempt), (each.whole, 0)) AS of (owner, number)
  GROUP BY owner, number
  ORDER BY owner, number
  ON CONFLICT (owner, attempt) DO UPDATE SET effects = kept.effects + excluded.effects, bytes = kept.bytes + excluded.bytes;
  RETURN NULL;
END
$$;

CREATE TRIGGER holdfast_effects_kept AFTER INSERT ON holdfast_effect
REFERENCING NEW TABLE AS made
FOR EACH STATEMENT EXECUTE FUNCTION holdfast_count_kept_together();

DROP TRIGGER holdfast_effect_kept ON holdfast_effect;

DROP FUNCTION holdfast_count_kept();
