CREATE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT COALESCE(
    CAST(NULLIF(current_setting('holdfast.now', true), '') AS bigint),
    CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint))
$$;

CREATE TABLE holdfast_task (
  id text COLLATE "C" PRIMARY KEY,
  run_id text,
  title text NOT NULL CHECK (title <> 'bad'),
  status text NOT NULL,
  previous text,
  version bigint NOT NULL DEFAULT 1,
  attempt bigint NOT NULL DEFAULT 0,
  generation bigint NOT NULL DEFAULT 1,
  changed_by text NOT NULL,
  changed_at bigint NOT NULL
);

CREATE TABLE holdfast_event (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  entity text NOT NULL,
  run_id text,
  version bigint NOT NULL,
  type text NOT NULL,
  from_status text,
  to_status text,
  attempt bigint NOT NULL,
  generation bigint NOT NULL,
  actor text NOT NULL,
  at bigint NOT NULL,
  data text,
  UNIQUE (entity, version)
);

CREATE TABLE note (text text NOT NULL UNIQUE);

CREATE TABLE reply (text text NOT NULL REFERENCES note (text) DEFERRABLE INITIALLY DEFERRED);

-- A COMMIT of a task titled 'slow' waits here until whoever holds the lock lets it go.
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1);
  RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON holdfast_task
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.title = 'slow') EXECUTE FUNCTION wait();

CREATE FUNCTION fail(code text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'on request' USING ERRCODE = code;
END
$$;
