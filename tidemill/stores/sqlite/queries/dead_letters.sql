-- name: list_dead
-- Index: task_dead_letter.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM task AS t INDEXED BY task_dead_letter
WHERE t.state = 'FAILED' AND (t.discarded_at IS NULL OR t.discarded_at < t.ended_at)
    AND t.namespace = ?1
    AND (?2 IS NULL OR t.run_id = ?2)
    AND t.run_id <= coalesce(?3, '~')
    AND (?3 IS NULL OR t.run_id < ?3 OR t.position > ?4)
ORDER BY t.run_id DESC, t.position
LIMIT ?5;

-- name: list_dead_errors
-- Index: task_dead_letter, then the run by its primary key. The beginning of an error is enough.
SELECT t.run_id, t.position, t.ended_at, substr(t.error, 1, 2000),
    (SELECT r.workflow FROM run AS r WHERE r.id = t.run_id)
FROM task AS t INDEXED BY task_dead_letter
WHERE t.state = 'FAILED' AND (t.discarded_at IS NULL OR t.discarded_at < t.ended_at)
    AND t.namespace = ?1
    AND (?2 IS NULL OR t.run_id = ?2)
    AND t.run_id <= coalesce(?3, '~')
    AND (?3 IS NULL OR t.run_id < ?3 OR t.position > ?4)
ORDER BY t.run_id DESC, t.position
LIMIT ?5;

-- name: read_tasks
-- Index: primary key.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM json_each(?1) AS wanted
CROSS JOIN task AS t
    ON t.run_id = json_extract(wanted.value, '$[0]')
    AND t.position = json_extract(wanted.value, '$[1]')
ORDER BY t.run_id DESC, t.position;

-- name: discard_task
-- Index: primary key.
UPDATE task SET discarded_at = max(now_micros(), ended_at)
WHERE run_id = ?1 AND position = ?2 AND state = 'FAILED';
