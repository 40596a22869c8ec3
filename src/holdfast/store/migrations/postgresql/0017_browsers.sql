CREATE TABLE holdfast_browser (
  digest text COLLATE "C" PRIMARY KEY,
  access text COLLATE "C" NOT NULL,
  granted_at bigint NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  entered_at bigint
);

CREATE INDEX holdfast_browser_end ON holdfast_browser (expires_at);
