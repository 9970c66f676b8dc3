-- tidemill: outside transaction
DROP INDEX CONCURRENTLY IF EXISTS task_noted;
CREATE INDEX CONCURRENTLY task_noted ON task (run_id) WHERE note <> '';
