CREATE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT COALESCE(
    CAST(NULLIF(current_setting('holdfast.now', true), '') AS bigint),
    CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint))
$$;

CREATE FUNCTION holdfast_within(tags text, offered text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT tags = '[]' OR CAST(tags AS jsonb) <@ CAST(offered AS jsonb)
$$;

CREATE TABLE holdfast_meta (
  name text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

INSERT INTO holdfast_meta (name, value) VALUES ('secret', replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));

CREATE TABLE holdfast_workflow (
  name text COLLATE "C" NOT NULL,
  version text COLLATE "C" NOT NULL,
  definition text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (name, version)
);

CREATE TABLE holdfast_slot (
  key text COLLATE "C" PRIMARY KEY,
  capacity integer NOT NULL CHECK (capacity >= 1),
  highest integer NOT NULL,
  used integer NOT NULL DEFAULT 0 CHECK (used >= 0)
);

CREATE TABLE holdfast_lease (
  key text COLLATE "C" PRIMARY KEY,
  owner text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  expires_at bigint NOT NULL
);

CREATE TABLE holdfast_run (
  id text COLLATE "C" PRIMARY KEY,
  workflow text COLLATE "C" NOT NULL,
  workflow_version text COLLATE "C" NOT NULL,
  key text COLLATE "C",
  body_digest text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled')),
  holds integer NOT NULL DEFAULT 0,
  input text NOT NULL,
  error text,
  priority integer NOT NULL DEFAULT 0,
  concurrency_key text COLLATE "C",
  version integer NOT NULL DEFAULT 1,
  generation integer NOT NULL DEFAULT 1,
  previous text COLLATE "C",
  changed_by text COLLATE "C" NOT NULL,
  changed_at bigint NOT NULL,
  created_at bigint NOT NULL,
  finished_at bigint,
  FOREIGN KEY (workflow, workflow_version) REFERENCES holdfast_workflow (name, version),
  CHECK ((status = 'running') = (finished_at IS NULL))
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX holdfast_run_key ON holdfast_run (key) WHERE key IS NOT NULL;
CREATE INDEX holdfast_run_waiting ON holdfast_run (concurrency_key, id)
  WHERE status = 'running' AND (holds & 32) <> 0;
-- Only lists ask for a version too: elsewhere this index would stand in for a better one.
CREATE INDEX holdfast_run_status ON holdfast_run (status, id) WHERE version >= 1;

CREATE TABLE holdfast_task (
  id text COLLATE "C" PRIMARY KEY,
  kind text COLLATE "C" NOT NULL DEFAULT 'work' CHECK (kind IN ('work', 'group', 'approval')),
  run_id text COLLATE "C" REFERENCES holdfast_run (id),
  parent_id text COLLATE "C" REFERENCES holdfast_task (id),
  step text,
  title text NOT NULL,
  agent text COLLATE "C" NOT NULL DEFAULT 'default',
  status text COLLATE "C" NOT NULL
    CHECK (status IN ('idle', 'queued', 'running', 'done', 'failed', 'cancelled')),
  planning_phase text COLLATE "C" NOT NULL DEFAULT 'none'
    CHECK (planning_phase IN ('none', 'active', 'finalized')),
  blocked boolean NOT NULL DEFAULT false,
  holds integer NOT NULL DEFAULT 0,
  run_holds integer NOT NULL DEFAULT 0,
  held_until bigint,
  due boolean NOT NULL DEFAULT true,
  scheduled_for bigint,
  run_now boolean NOT NULL DEFAULT false,
  skipped boolean NOT NULL DEFAULT false,
  priority integer NOT NULL DEFAULT 0,
  position bigint NOT NULL DEFAULT 0,
  tags text NOT NULL DEFAULT '[]',
  key text COLLATE "C",
  body_digest text COLLATE "C" NOT NULL,
  concurrency_key text COLLATE "C",
  attempt integer NOT NULL DEFAULT 0,
  failures integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL,
  lost integer NOT NULL DEFAULT 0,
  max_lost integer NOT NULL,
  backoff bigint NOT NULL,
  backoff_max bigint NOT NULL,
  timeout bigint,
  generation integer NOT NULL DEFAULT 1,
  epoch integer NOT NULL DEFAULT 1,
  payload text NOT NULL,
  output text,
  result_digest text COLLATE "C",
  error text,
  usage text,
  progress text,
  worker text COLLATE "C",
  lease_expires_at bigint,
  version integer NOT NULL DEFAULT 1,
  previous text COLLATE "C",
  changed_by text COLLATE "C" NOT NULL,
  changed_at bigint NOT NULL,
  created_at bigint NOT NULL,
  started_at bigint,
  finished_at bigint,
  CHECK ((status = 'running') = (lease_expires_at IS NOT NULL)),
  CHECK ((status IN ('done', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
  CHECK (failures <= max_attempts),
  CHECK (lost <= max_lost)
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX holdfast_task_key ON holdfast_task (key) WHERE key IS NOT NULL;
CREATE INDEX holdfast_task_ready
  ON holdfast_task (agent, run_now DESC, priority DESC, position, id)
  WHERE status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due;
CREATE INDEX holdfast_task_scheduled ON holdfast_task (scheduled_for)
  WHERE status = 'queued' AND NOT due;
CREATE INDEX holdfast_task_unknown ON holdfast_task (id) WHERE (holds & 128) <> 0;
CREATE INDEX holdfast_task_held ON holdfast_task (held_until) WHERE held_until IS NOT NULL;
-- Only the sweep asks for an attempt too: beside a set of reports this index would be read whole.
CREATE INDEX holdfast_task_running ON holdfast_task (id)
  WHERE lease_expires_at IS NOT NULL AND attempt >= 1;
-- Without the two that tasks pass through by the million: `running` has its own, `done` is the rest.
CREATE INDEX holdfast_task_status ON holdfast_task (status, id)
  WHERE status IN ('idle', 'queued', 'failed', 'cancelled') AND version >= 1;
CREATE INDEX holdfast_task_unfinished ON holdfast_task (run_id, status)
  WHERE status <> 'done' AND run_id IS NOT NULL;
CREATE INDEX holdfast_task_run ON holdfast_task (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX holdfast_task_parent ON holdfast_task (parent_id, position)
  WHERE parent_id IS NOT NULL;

CREATE TABLE holdfast_need (
  task_id text COLLATE "C" NOT NULL REFERENCES holdfast_task (id) ON DELETE CASCADE,
  need_id text COLLATE "C" NOT NULL REFERENCES holdfast_task (id),
  since integer NOT NULL,
  PRIMARY KEY (task_id, need_id),
  CHECK (task_id <> need_id)
);

CREATE INDEX holdfast_need_dependent ON holdfast_need (need_id, task_id);

CREATE TABLE holdfast_event (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  entity text COLLATE "C" NOT NULL,
  run_id text COLLATE "C",
  version integer NOT NULL,
  type text COLLATE "C" NOT NULL,
  from_status text COLLATE "C",
  to_status text COLLATE "C",
  attempt integer NOT NULL,
  generation integer NOT NULL,
  actor text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  data text
);

CREATE UNIQUE INDEX holdfast_event_entity ON holdfast_event (entity, version);

CREATE FUNCTION holdfast_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'holdfast: a % moves only along the transition table, and out of a terminal '
    'status only with generation + 1', TG_ARGV[0] USING ERRCODE = 'check_violation';
END
$$;

CREATE TRIGGER holdfast_task_guard BEFORE UPDATE OF status, generation ON holdfast_task
FOR EACH ROW WHEN (NEW.status <> OLD.status AND (
  OLD.status || '>' || NEW.status NOT IN (
    'idle>queued', 'idle>running', 'idle>cancelled', 'idle>done', 'idle>failed',
    'queued>running', 'queued>cancelled', 'queued>idle', 'queued>done', 'queued>failed',
    'running>done', 'running>failed', 'running>cancelled', 'running>queued',
    'done>idle', 'done>queued', 'failed>idle', 'failed>queued',
    'cancelled>idle', 'cancelled>queued')
  OR (OLD.status IN ('done', 'failed', 'cancelled') AND NEW.generation <> OLD.generation + 1)))
EXECUTE FUNCTION holdfast_refuse('task');

CREATE TRIGGER holdfast_run_guard BEFORE UPDATE OF status, generation ON holdfast_run
FOR EACH ROW WHEN (NEW.status <> OLD.status AND (
  OLD.status || '>' || NEW.status NOT IN (
    'running>completed', 'running>failed', 'running>cancelled',
    'completed>running', 'failed>running', 'cancelled>running')
  OR (OLD.status <> 'running' AND NEW.generation <> OLD.generation + 1)))
EXECUTE FUNCTION holdfast_refuse('run');
