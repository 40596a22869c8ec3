CREATE TABLE holdfast_hook (
  name text COLLATE "C" PRIMARY KEY,
  events text NOT NULL,
  about text COLLATE "C",
  template text NOT NULL,
  created_at bigint NOT NULL
);
