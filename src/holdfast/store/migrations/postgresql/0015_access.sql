CREATE TABLE holdfast_access (
  name text COLLATE "C" PRIMARY KEY,
  digest text COLLATE "C" NOT NULL UNIQUE,
  role text NOT NULL CHECK (role IN ('viewer', 'operator', 'worker', 'admin')),
  agents text,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);

CREATE TABLE holdfast_pull (
  request text COLLATE "C" PRIMARY KEY,
  taken text NOT NULL,
  asked_at bigint NOT NULL
);

CREATE INDEX holdfast_pull_age ON holdfast_pull (asked_at);
