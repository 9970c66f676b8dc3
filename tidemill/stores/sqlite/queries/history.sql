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
-- Index: primary key. Keeps the last ?6 bytes and counts those before them: what is kept has
-- no gap. Output of a run that does not exist is dropped.
INSERT INTO attempt_log (run_id, position, epoch, data, dropped, namespace)
SELECT ?1, ?2, ?3, ?4, ?5, namespace FROM run WHERE id = ?1
ON CONFLICT (run_id, position, epoch) DO UPDATE
SET data = CASE
        WHEN excluded.dropped > 0 THEN excluded.data
        ELSE substr(CAST(attempt_log.data || excluded.data AS BLOB), -?6)
    END,
    dropped = attempt_log.dropped + CASE
        WHEN excluded.dropped > 0 THEN excluded.dropped + length(attempt_log.data)
        ELSE max(0, length(attempt_log.data) + length(excluded.data) - ?6)
    END;
