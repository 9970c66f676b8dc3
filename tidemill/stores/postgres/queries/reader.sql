-- name: read_run
SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
    r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
    r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
    r.kind, r.key, r.swept
FROM run AS r
WHERE r.id = $2 AND r.namespace = $1;

-- name: read_runs
-- Index: primary key. Row by row: see `lock_tasks`.
SELECT r.*
FROM unnest($1::UUID[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
        r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
        r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
        r.kind, r.key, r.swept
    FROM run AS r
    WHERE r.id = wanted.id
    OFFSET 0
) AS r;

-- name: find_runs
SELECT id
FROM run
WHERE namespace = $1 AND (starts_with(id::TEXT, $2) OR right(id::TEXT, length($2)) = $2)
ORDER BY id DESC
LIMIT $3;

-- name: find_key
-- Index: primary key.
SELECT run_id FROM start_key WHERE namespace = $1 AND kind = $2 AND key = $3;

-- name: list_tasks
-- Index: primary key.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM task AS t
WHERE t.run_id = $2 AND t.position > $3 AND t.namespace = $1
ORDER BY t.position
LIMIT $4;

-- name: read_first_tasks
-- Index: primary key. Row by row: see `lock_tasks`.
SELECT t.*
FROM unnest($1::UUID[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
        t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
        t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
    FROM task AS t
    WHERE t.run_id = wanted.id AND t.position = 0
    OFFSET 0
) AS t;

-- name: list_attempts
-- Index: primary key.
SELECT run_id, position, epoch, attempt, reason, session_id, started_at, ended_at, error
FROM attempt
WHERE run_id = $2 AND position = $3 AND namespace = $1
ORDER BY epoch;

-- name: list_logs
-- Index: primary key.
SELECT epoch, data, dropped
FROM attempt_log
WHERE run_id = $2 AND position = $3 AND namespace = $1
ORDER BY epoch;
