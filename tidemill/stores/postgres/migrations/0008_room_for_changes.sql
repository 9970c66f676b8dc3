-- The row of a run changes with each of its tasks. With room for the next version on its page, no
-- index has to hear of it.
ALTER TABLE run SET (fillfactor = 50);
