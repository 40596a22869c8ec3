-- name: older_columns
-- purpose: the columns of a table of an older file, none if it has no such table
SELECT lower(name) AS name FROM pragma_table_info(:table)

-- name: older_tasks
-- purpose: every task of a file with one table of tasks
SELECT * FROM tasks

-- name: older_runs
-- purpose: every run of a file with runs and steps
SELECT * FROM runs

-- name: older_steps
-- purpose: every step of the runs of such a file
SELECT * FROM steps

-- name: older_stories
-- purpose: every story that a loop of such a file goes through
SELECT * FROM stories
