-- The labels of runs and tasks, for people: as JSON beside the row, and one by one where they are looked up.
ALTER TABLE holdfast_run ADD COLUMN labels TEXT;
ALTER TABLE holdfast_task ADD COLUMN labels TEXT;

CREATE TABLE holdfast_label (
  name text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  entity text COLLATE "C" NOT NULL,
  PRIMARY KEY (name, value, entity)
);

CREATE FUNCTION holdfast_keep_labels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO holdfast_label (name, value, entity)
  SELECT each.key, each.value, NEW.id FROM jsonb_each_text(CAST(NEW.labels AS jsonb)) AS each;
  RETURN NULL;
END
$$;

CREATE TRIGGER holdfast_run_labelled AFTER INSERT ON holdfast_run
FOR EACH ROW WHEN (NEW.labels IS NOT NULL) EXECUTE FUNCTION holdfast_keep_labels();

CREATE TRIGGER holdfast_task_labelled AFTER INSERT ON holdfast_task
FOR EACH ROW WHEN (NEW.labels IS NOT NULL) EXECUTE FUNCTION holdfast_keep_labels();

CREATE FUNCTION holdfast_forget_labels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM holdfast_label AS label USING jsonb_each_text(CAST(OLD.labels AS jsonb)) AS each
  WHERE label.name = each.key AND label.value = each.value AND label.entity = OLD.id;
  RETURN NULL;
END
$$;

CREATE TRIGGER holdfast_run_unlabelled AFTER DELETE ON holdfast_run
FOR EACH ROW WHEN (OLD.labels IS NOT NULL) EXECUTE FUNCTION holdfast_forget_labels();

CREATE TRIGGER holdfast_task_unlabelled AFTER DELETE ON holdfast_task
FOR EACH ROW WHEN (OLD.labels IS NOT NULL) EXECUTE FUNCTION holdfast_forget_labels();

-- Only lists and counts ask for a time too: elsewhere this index would stand in for a better one.
CREATE INDEX holdfast_run_workflow ON holdfast_run (workflow, id, status) WHERE created_at >= 0;
