-- Rows are changed in place here: nothing to do.
SELECT 1;
