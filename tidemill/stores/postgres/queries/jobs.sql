-- Jobs are runs of one task, at position 0; what is listed is their ids, newest first.

-- name: list_jobs
-- Index: run_by_kind, then the task by its primary key.
SELECT r.id
FROM run AS r
WHERE r.namespace = $1 AND r.kind = 'job' AND r.id < $2
    AND ($3::TEXT IS NULL OR r.workflow = $3)
    AND (cardinality($4::TEXT[]) = 0 OR (
        SELECT t.state FROM task AS t WHERE t.run_id = r.id AND t.position = 0
    ) = ANY($4::TEXT[]))
ORDER BY r.id DESC
LIMIT $5;

-- name: list_open_jobs
-- Index: run_open, then the task by its primary key.
SELECT r.id
FROM run AS r
WHERE r.namespace = $1 AND r.ended_at IS NULL AND r.kind = 'job' AND r.id < $2
    AND ($3::TEXT IS NULL OR r.workflow = $3)
    AND (
        SELECT t.state FROM task AS t WHERE t.run_id = r.id AND t.position = 0
    ) = ANY($4::TEXT[])
ORDER BY r.id DESC
LIMIT $5;

-- name: list_unsuccessful_jobs
-- Index: run_unsuccessful, then the task by its primary key.
SELECT r.id
FROM run AS r
WHERE r.namespace = $1 AND r.state IN ('FAILED', 'CANCELLED') AND r.state = $6 AND r.id < $2
    AND r.kind = 'job'
    AND ($3::TEXT IS NULL OR r.workflow = $3)
    AND (
        SELECT t.state FROM task AS t WHERE t.run_id = r.id AND t.position = 0
    ) = ANY($4::TEXT[])
ORDER BY r.id DESC
LIMIT $5;

-- name: list_granted_jobs
-- Index: task_granted, read whole: there are no more than slots. Then the run by its primary key.
WITH granted AS MATERIALIZED (
    SELECT run_id, position, namespace, state FROM task
    WHERE state IN ('RUNNING', 'CANCELLING')
    ORDER BY session_id
)
SELECT t.run_id
FROM granted AS t
WHERE t.namespace = $1 AND t.run_id < $2 AND t.position = 0 AND t.state = ANY($4::TEXT[])
    AND (
        SELECT r.kind = 'job' AND ($3::TEXT IS NULL OR r.workflow = $3)
        FROM run AS r WHERE r.id = t.run_id
    )
ORDER BY t.run_id DESC
LIMIT $5;

-- name: list_backoff_jobs
-- Index: task_backoff, then the run by its primary key.
SELECT t.run_id
FROM task AS t
WHERE t.state = 'BACKOFF' AND t.namespace = $1 AND t.run_id < $2 AND t.position = 0
    AND cardinality($4::TEXT[]) > 0
    AND (
        SELECT r.kind = 'job' AND ($3::TEXT IS NULL OR r.workflow = $3)
        FROM run AS r WHERE r.id = t.run_id
    )
ORDER BY t.run_id DESC
LIMIT $5;
