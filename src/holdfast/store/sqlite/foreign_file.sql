-- name: older_columns
-- purpose: Read the columns of a table of an older file; no row means no such table
SELECT lower(name) AS name FROM pragma_table_info(:table)

-- name: older_tasks
-- purpose: Read every task of an older file with a single table of tasks
SELECT * FROM tasks

-- name: older_runs
-- purpose: Read every run of an older file with runs and steps
SELECT * FROM runs

-- name: older_steps
-- purpose: Read every step of the runs of an older file
SELECT * FROM steps

-- name: older_stories
-- purpose: Read every story of the loops of an older file
SELECT * FROM stories
