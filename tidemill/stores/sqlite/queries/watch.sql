-- name: now
SELECT now_micros();

-- name: due_tasks
-- Index: task_due, then the run by its primary key.
SELECT t.run_id, t.position, t.epoch, t.state
FROM task AS t INDEXED BY task_due
CROSS JOIN run AS r ON r.id = t.run_id
WHERE t.due_at IS NOT NULL AND t.due_at <= now_micros() AND t.format <= ?2
    AND r.quarantine IS NULL AND r.format <= ?2
ORDER BY t.due_at
LIMIT ?1;

-- name: due_runs
-- Index: run_due.
SELECT id
FROM run INDEXED BY run_due
WHERE due_at IS NOT NULL AND ended_at IS NULL AND stop IS NULL
    AND due_at <= now_micros() AND quarantine IS NULL AND format <= ?2
ORDER BY due_at
LIMIT ?1;

-- name: lost_tasks
-- Index: task_granted, for each session that is over, then the run by its primary key.
SELECT t.run_id, t.position, t.epoch, t.session_id
FROM session AS s
CROSS JOIN task AS t INDEXED BY task_granted ON t.session_id = s.id
CROSS JOIN run AS r ON r.id = t.run_id
WHERE (s.closed_at IS NOT NULL OR (?2 AND s.expires_at <= now_micros()))
    AND t.state IN ('RUNNING', 'CANCELLING') AND t.format <= ?3
    AND r.quarantine IS NULL AND r.format <= ?3
LIMIT ?1;

-- name: orphaned_tasks
-- Index: task_granted, all of it, then session and run by their primary keys.
SELECT t.run_id, t.position, t.epoch, t.session_id
FROM task AS t INDEXED BY task_granted
CROSS JOIN run AS r ON r.id = t.run_id
WHERE t.state IN ('RUNNING', 'CANCELLING') AND t.format <= ?2
    AND NOT EXISTS (SELECT 1 FROM session AS s WHERE s.id = t.session_id)
    AND r.quarantine IS NULL AND r.format <= ?2
ORDER BY t.session_id
LIMIT ?1;

-- name: unsettled_runs
-- Index: run_unsettled, run_unswept and task_untold.
SELECT id
FROM run INDEXED BY run_unsettled
WHERE (state = 'PENDING' OR told IS NOT NULL OR (stop IS NOT NULL AND ended_at IS NULL))
    AND quarantine IS NULL AND format <= ?2
UNION
SELECT id
FROM run INDEXED BY run_unswept
WHERE swept IS NOT NULL AND quarantine IS NULL AND format <= ?2
UNION
SELECT r.id
FROM (SELECT DISTINCT run_id FROM task INDEXED BY task_untold WHERE told IS NOT NULL) AS untold
CROSS JOIN run AS r ON r.id = untold.run_id
WHERE r.ended_at IS NULL AND r.quarantine IS NULL AND r.format <= ?2
LIMIT ?1;

-- name: list_foreign_runs
-- Index: run_foreign, whose condition is repeated so that it can be used.
SELECT id FROM run WHERE format > 1 AND format > ?1 LIMIT ?2;

-- name: ready_lanes
-- Index: task_ready and task_ready_alone, one step of the index per lane, however long the lane.
WITH RECURSIVE
lane (place) AS (
    SELECT (
        SELECT rowid FROM task INDEXED BY task_ready
        WHERE state = 'READY' AND hold IS NULL
        ORDER BY namespace, route, priority
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT next.rowid FROM task AS next INDEXED BY task_ready
        WHERE next.state = 'READY' AND next.hold IS NULL
            AND (next.namespace, next.route, next.priority) > (t.namespace, t.route, t.priority)
        ORDER BY next.namespace, next.route, next.priority
        LIMIT 1
    )
    FROM lane CROSS JOIN task AS t ON t.rowid = lane.place
),
lane_alone (place) AS (
    SELECT (
        SELECT rowid FROM task INDEXED BY task_ready_alone
        WHERE state = 'READY' AND hold = 'alone'
        ORDER BY namespace, route, priority
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT next.rowid FROM task AS next INDEXED BY task_ready_alone
        WHERE next.state = 'READY' AND next.hold = 'alone'
            AND (next.namespace, next.route, next.priority) > (t.namespace, t.route, t.priority)
        ORDER BY next.namespace, next.route, next.priority
        LIMIT 1
    )
    FROM lane_alone CROSS JOIN task AS t ON t.rowid = lane_alone.place
)
SELECT t.namespace, t.route, t.priority, 0 AS alone
FROM lane CROSS JOIN task AS t ON t.rowid = lane.place
UNION ALL
SELECT t.namespace, t.route, t.priority, 1 AS alone
FROM lane_alone CROSS JOIN task AS t ON t.rowid = lane_alone.place;

-- name: held_tasks
-- Index: task_granted.
SELECT t.run_id, t.position, t.epoch, t.started_at, t.state = 'CANCELLING', t.session_id
FROM json_each(?1) AS wanted
CROSS JOIN task AS t INDEXED BY task_granted ON t.session_id = json_extract(wanted.value, '$[0]')
CROSS JOIN run AS r ON r.id = t.run_id
WHERE t.state IN ('RUNNING', 'CANCELLING')
    AND r.quarantine IS NULL
ORDER BY t.run_id, t.position;
