-- Every item of a loop with a lower position has ended. Who looks for open ones begins there: an index of
-- what is open keeps an entry of each that was, until PostgreSQL vacuums the table.
ALTER TABLE holdfast_task ADD COLUMN ended_before bigint;

CREATE FUNCTION holdfast_open_again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE holdfast_task SET ended_before = NULL WHERE id = NEW.parent_id AND ended_before > NEW.position;
  RETURN NULL;
END
$$;

-- Nothing ends its end but with another generation, and what is changed at every step changes none.
CREATE TRIGGER holdfast_task_open_again AFTER UPDATE OF generation, position ON holdfast_task
FOR EACH ROW WHEN ((NEW.generation > OLD.generation OR NEW.position < OLD.position)
  AND NEW.status IN ('idle', 'queued'))
EXECUTE FUNCTION holdfast_open_again();

CREATE FUNCTION holdfast_made_again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE holdfast_task SET ended_before = NULL WHERE id = NEW.id;
  RETURN NULL;
END
$$;

CREATE TRIGGER holdfast_task_made_again AFTER UPDATE OF made ON holdfast_task
FOR EACH ROW WHEN (NEW.made < OLD.made)
EXECUTE FUNCTION holdfast_made_again();
