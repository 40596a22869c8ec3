-- Since when the present holder has a lease; a renewal does not change it.
ALTER TABLE holdfast_lease ADD COLUMN held_since INTEGER;
