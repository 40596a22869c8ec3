-- The agent that a task was taken from when it was handed to another after a failure for good.
ALTER TABLE holdfast_task ADD COLUMN escalated_from text;
