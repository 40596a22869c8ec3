ALTER TABLE holdfast_task ADD COLUMN declares boolean NOT NULL DEFAULT false;
