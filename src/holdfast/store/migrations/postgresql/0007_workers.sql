CREATE TABLE holdfast_worker (
  name text COLLATE "C" PRIMARY KEY,
  agents text NOT NULL,
  tags text NOT NULL,
  concurrency integer NOT NULL,
  told text CHECK (told IN ('drain', 'evict')),
  started_at bigint NOT NULL,
  seen_at bigint NOT NULL,
  expires_at bigint NOT NULL
);

CREATE TABLE holdfast_stop (
  task_id text COLLATE "C" NOT NULL REFERENCES holdfast_task (id) ON DELETE CASCADE,
  attempt integer NOT NULL,
  stopped_at bigint NOT NULL,
  ended integer NOT NULL,
  remaining integer NOT NULL,
  PRIMARY KEY (task_id, attempt)
);
