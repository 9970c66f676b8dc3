-- What a next release might do to the busiest table: a column with a default, and a rule for it
-- that is checked for old rows later.
ALTER TABLE task ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD CONSTRAINT task_note_is_short CHECK (length(note) < 1000) NOT VALID;
