-- The agents of which a worker does tasks that name neither function nor program, by a command of its
-- own, or by whoever claims over HTTP.
ALTER TABLE holdfast_worker ADD COLUMN equipped TEXT NOT NULL DEFAULT '[]';
