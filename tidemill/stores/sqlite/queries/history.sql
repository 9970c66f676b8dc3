-- name: add_attempt
INSERT INTO attempt (
    run_id, position, epoch, attempt, reason, session_id, started_at, ended_at, error, namespace
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, (SELECT namespace FROM run WHERE id = ?1)
);

-- name: add_result
INSERT INTO task_result (run_id, position, data, namespace)
VALUES (?1, ?2, ?3, (SELECT namespace FROM run WHERE id = ?1));

-- name: add_log
-- Index: primary key. Keeps the last ?5 bytes. Output of a run that does not exist is dropped.
INSERT INTO attempt_log (run_id, position, epoch, data, namespace)
SELECT ?1, ?2, ?3, ?4, namespace FROM run WHERE id = ?1
ON CONFLICT (run_id, position, epoch) DO UPDATE
SET data = substr(CAST(attempt_log.data || excluded.data AS BLOB), -?5);
