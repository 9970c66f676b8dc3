-- name: now
SELECT now_micros();

-- name: due_tasks
-- Index: task_due, then the run by its primary key: a subquery, since the planner would begin a
-- join at the runs when there are few. The clock is read once, by another one: an index cannot be
-- searched for a value that changes from row to row.
SELECT t.run_id, t.position, t.epoch, t.state
FROM task AS t
WHERE t.due_at IS NOT NULL AND t.due_at <= (SELECT now_micros()) AND t.format <= $2
    AND (SELECT r.quarantine IS NULL AND r.format <= $2 FROM run AS r WHERE r.id = t.run_id)
ORDER BY t.due_at
LIMIT $1;

-- name: due_runs
-- Index: run_deadline, whose condition is repeated as it is, so that no other one can be used.
SELECT id
FROM run
WHERE due_at IS NOT NULL AND stop IS NULL AND coalesce(ended_at, 0) = 0
    AND due_at <= (SELECT now_micros()) AND quarantine IS NULL AND format <= $2
ORDER BY due_at
LIMIT $1;

-- name: lost_tasks
-- Index: task_granted, for each session that is over, then the run by its primary key. Begins at the
-- sessions, which are few: what was granted once is passed by, however much of it is still there.
SELECT t.run_id, t.position, t.epoch, t.session_id
FROM session AS s
CROSS JOIN LATERAL (
    SELECT t.run_id, t.position, t.epoch, t.session_id
    FROM task AS t
    WHERE t.session_id = s.id AND t.state IN ('RUNNING', 'CANCELLING') AND t.format <= $3
        AND (SELECT r.quarantine IS NULL AND r.format <= $3 FROM run AS r WHERE r.id = t.run_id)
    LIMIT $1
) AS t
WHERE s.closed_at IS NOT NULL OR ($2::BOOLEAN AND s.expires_at <= (SELECT now_micros()))
LIMIT $1;

-- name: orphaned_tasks
-- Index: task_granted, all of it, then session and run by their primary keys.
SELECT t.run_id, t.position, t.epoch, t.session_id
FROM task AS t
WHERE t.state IN ('RUNNING', 'CANCELLING') AND t.format <= $2
    AND (SELECT s.id FROM session AS s WHERE s.id = t.session_id) IS NULL
    AND (SELECT r.quarantine IS NULL AND r.format <= $2 FROM run AS r WHERE r.id = t.run_id)
ORDER BY t.session_id
LIMIT $1;

-- name: unsettled_runs
-- Index: run_unsettled, run_unswept and task_untold.
SELECT id
FROM run
WHERE (state = 'PENDING' OR told IS NOT NULL OR (stop IS NOT NULL AND ended_at IS NULL))
    AND quarantine IS NULL AND format <= $2
UNION
SELECT id
FROM run
WHERE swept IS NOT NULL AND quarantine IS NULL AND format <= $2
UNION
SELECT r.id
FROM (SELECT DISTINCT run_id FROM task WHERE told IS NOT NULL) AS t
JOIN run AS r ON r.id = t.run_id
WHERE r.ended_at IS NULL AND r.quarantine IS NULL AND r.format <= $2
LIMIT $1;

-- name: list_foreign_runs
-- Index: run_foreign, whose condition is repeated so that it can be used.
SELECT id FROM run WHERE format > 1 AND format > $1::INTEGER LIMIT $2;

-- name: ready_lanes
-- Index: task_ready and task_ready_alone, one step of the index per lane, however long the lane.
WITH RECURSIVE
lane AS (
    (
        SELECT namespace, route, priority FROM task
        WHERE state = 'READY' AND hold IS NULL
        ORDER BY namespace, route, priority
        LIMIT 1
    )
    UNION ALL
    SELECT next.namespace, next.route, next.priority
    FROM lane AS l
    CROSS JOIN LATERAL (
        SELECT t.namespace, t.route, t.priority FROM task AS t
        WHERE t.state = 'READY' AND t.hold IS NULL
            AND (t.namespace, t.route, t.priority) > (l.namespace, l.route, l.priority)
        ORDER BY t.namespace, t.route, t.priority
        LIMIT 1
    ) AS next
),
lane_alone AS (
    (
        SELECT namespace, route, priority FROM task
        WHERE state = 'READY' AND hold = 'alone'
        ORDER BY namespace, route, priority
        LIMIT 1
    )
    UNION ALL
    SELECT next.namespace, next.route, next.priority
    FROM lane_alone AS l
    CROSS JOIN LATERAL (
        SELECT t.namespace, t.route, t.priority FROM task AS t
        WHERE t.state = 'READY' AND t.hold = 'alone'
            AND (t.namespace, t.route, t.priority) > (l.namespace, l.route, l.priority)
        ORDER BY t.namespace, t.route, t.priority
        LIMIT 1
    ) AS next
)
SELECT namespace, route, priority, FALSE AS alone FROM lane
UNION ALL
SELECT namespace, route, priority, TRUE AS alone FROM lane_alone;

-- name: held_tasks
-- Index: task_granted.
SELECT t.run_id, t.position, t.epoch, t.started_at, t.state = 'CANCELLING', t.session_id
FROM task AS t
WHERE t.session_id = ANY($1::TEXT[]) AND t.state IN ('RUNNING', 'CANCELLING')
    AND (SELECT r.quarantine IS NULL FROM run AS r WHERE r.id = t.run_id)
ORDER BY t.run_id, t.position;
