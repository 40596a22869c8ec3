CREATE TABLE holdfast_limit (
  agent text COLLATE "C" PRIMARY KEY,
  until bigint NOT NULL,
  task_id text NOT NULL
);
