-- name: read_run
SELECT id, namespace, workflow, version_id, state, open, failed, ended, next_position, told, stop,
    generation, quarantine, labels, parent_run, parent_position, created_at, due_at, started_at,
    ended_at, reason, format
FROM run
WHERE id = ?1;

-- name: find_runs
SELECT id
FROM run
WHERE substr(id, 1, length(?1)) = ?1 OR substr(id, -length(?1)) = ?1
ORDER BY id DESC
LIMIT ?2;

-- name: list_runs
-- Index: run_listing, read backwards until `limit` rows match.
SELECT id, namespace, workflow, version_id, state, open, failed, ended, next_position, told, stop,
    generation, quarantine, labels, parent_run, parent_position, created_at, due_at, started_at,
    ended_at, reason, format
FROM run INDEXED BY run_listing
WHERE namespace = ?2
    AND (json_array_length(?1) = 0
        OR state IN (SELECT value FROM json_each(?1)))
    AND (?3 IS NULL OR workflow = ?3)
    AND id < coalesce(?4, '~')
ORDER BY id DESC
LIMIT ?5;

-- name: list_tasks
-- Index: primary key.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM task AS t
WHERE t.run_id = ?1 AND t.position > ?2
ORDER BY t.position
LIMIT ?3;

-- name: list_attempts
-- Index: primary key.
SELECT run_id, position, epoch, attempt, reason, session_id, started_at, ended_at, error
FROM attempt
WHERE run_id = ?1 AND position = ?2
ORDER BY epoch;

-- name: list_logs
-- Index: primary key.
SELECT epoch, data, dropped
FROM attempt_log
WHERE run_id = ?1 AND position = ?2
ORDER BY epoch;

-- name: list_dead
-- Index: task_dead.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM task AS t INDEXED BY task_dead
WHERE t.state = 'FAILED' AND t.namespace = ?1
    AND (?2 IS NULL OR t.run_id = ?2)
    AND t.run_id <= coalesce(?3, '~')
    AND (?3 IS NULL OR t.run_id < ?3 OR t.position > ?4)
ORDER BY t.run_id DESC, t.position
LIMIT ?5;

-- name: list_sessions
SELECT id, namespace, worker, scheduler, secret_hash, slots, queues, labels, opened_at, expires_at,
    closed_at, successor
FROM session
WHERE closed_at IS NULL AND expires_at > now_micros() AND id NOT LIKE 'pool-%'
ORDER BY opened_at, id;
