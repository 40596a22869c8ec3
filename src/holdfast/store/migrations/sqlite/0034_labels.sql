-- The labels of runs and tasks, for people: as JSON beside the row, and one by one where they are looked up.
ALTER TABLE holdfast_run ADD COLUMN labels TEXT;
ALTER TABLE holdfast_task ADD COLUMN labels TEXT;

CREATE TABLE holdfast_label (
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  entity TEXT NOT NULL,
  PRIMARY KEY (name, value, entity)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER holdfast_run_labelled AFTER INSERT ON holdfast_run WHEN NEW.labels IS NOT NULL
BEGIN
  INSERT INTO holdfast_label (name, value, entity) SELECT key, value, NEW.id FROM json_each(NEW.labels);
END;

CREATE TRIGGER holdfast_task_labelled AFTER INSERT ON holdfast_task WHEN NEW.labels IS NOT NULL
BEGIN
  INSERT INTO holdfast_label (name, value, entity) SELECT key, value, NEW.id FROM json_each(NEW.labels);
END;

CREATE TRIGGER holdfast_run_unlabelled AFTER DELETE ON holdfast_run WHEN OLD.labels IS NOT NULL
BEGIN
  DELETE FROM holdfast_label
  WHERE (name, value) IN (SELECT key, value FROM json_each(OLD.labels)) AND entity = OLD.id;
END;

CREATE TRIGGER holdfast_task_unlabelled AFTER DELETE ON holdfast_task WHEN OLD.labels IS NOT NULL
BEGIN
  DELETE FROM holdfast_label
  WHERE (name, value) IN (SELECT key, value FROM json_each(OLD.labels)) AND entity = OLD.id;
END;

-- Only lists and counts ask for a time too: elsewhere this index would stand in for a better one.
CREATE INDEX holdfast_run_workflow ON holdfast_run (workflow, id, status) WHERE created_at >= 0;
