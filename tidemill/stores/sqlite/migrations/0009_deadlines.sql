-- Queries name their index here: nothing to do.
SELECT 1;
