-- Rows are changed in place here. Dead letters have an index of their own since they can be discarded.
DROP INDEX task_dead;
