-- Jobs are runs of one task, at position 0; what is listed is their ids, newest first.

-- name: list_jobs
-- Index: run_by_kind, then the task by its primary key.
SELECT r.id
FROM run AS r INDEXED BY run_by_kind
WHERE r.namespace = ?1 AND r.kind = 'job' AND r.id < ?2
    AND (?3 IS NULL OR r.workflow = ?3)
    AND (json_array_length(?4) = 0 OR (
        SELECT t.state FROM task AS t WHERE t.run_id = r.id AND t.position = 0
    ) IN (SELECT value FROM json_each(?4)))
ORDER BY r.id DESC
LIMIT ?5;

-- name: list_open_jobs
-- Index: run_open, then the task by its primary key.
SELECT r.id
FROM run AS r INDEXED BY run_open
WHERE r.namespace = ?1 AND r.ended_at IS NULL AND r.kind = 'job' AND r.id < ?2
    AND (?3 IS NULL OR r.workflow = ?3)
    AND (
        SELECT t.state FROM task AS t WHERE t.run_id = r.id AND t.position = 0
    ) IN (SELECT value FROM json_each(?4))
ORDER BY r.id DESC
LIMIT ?5;

-- name: list_unsuccessful_jobs
-- Index: run_unsuccessful, then the task by its primary key.
SELECT r.id
FROM run AS r INDEXED BY run_unsuccessful
WHERE r.namespace = ?1 AND (r.state = 'FAILED' OR r.state = 'CANCELLED') AND r.state = ?6 AND r.id < ?2
    AND r.kind = 'job'
    AND (?3 IS NULL OR r.workflow = ?3)
    AND (
        SELECT t.state FROM task AS t WHERE t.run_id = r.id AND t.position = 0
    ) IN (SELECT value FROM json_each(?4))
ORDER BY r.id DESC
LIMIT ?5;

-- name: list_granted_jobs
-- Index: task_granted, read whole: there are no more than slots. Then the run by its primary key.
SELECT t.run_id
FROM task AS t INDEXED BY task_granted
WHERE t.state IN ('RUNNING', 'CANCELLING') AND t.namespace = ?1 AND t.run_id < ?2
    AND t.position = 0 AND t.state IN (SELECT value FROM json_each(?4))
    AND (
        SELECT r.kind = 'job' AND (?3 IS NULL OR r.workflow = ?3)
        FROM run AS r WHERE r.id = t.run_id
    )
ORDER BY t.run_id DESC
LIMIT ?5;

-- name: list_backoff_jobs
-- Index: task_backoff, then the run by its primary key.
SELECT t.run_id
FROM task AS t INDEXED BY task_backoff
WHERE t.state = 'BACKOFF' AND t.namespace = ?1 AND t.run_id < ?2 AND t.position = 0
    AND json_array_length(?4) > 0
    AND (
        SELECT r.kind = 'job' AND (?3 IS NULL OR r.workflow = ?3)
        FROM run AS r WHERE r.id = t.run_id
    )
ORDER BY t.run_id DESC
LIMIT ?5;
