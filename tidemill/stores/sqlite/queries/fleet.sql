-- name: list_sessions
-- All sessions are read: there are few.
SELECT id, namespace, worker, scheduler, secret_hash, slots, queues, labels, opened_at, expires_at,
    closed_at, successor, offers
FROM session
WHERE namespace = ?1 AND closed_at IS NULL AND expires_at > now_micros() AND id NOT LIKE 'pool-%'
ORDER BY opened_at, id;

-- name: count_ready
-- Index: task_ready, no further than counting goes.
SELECT lane.route,
    (
        SELECT count(*) FROM (
            SELECT 1 FROM task AS t
            WHERE t.state = 'READY' AND t.hold IS NULL AND t.namespace = lane.namespace
                AND t.route = lane.route AND t.priority = lane.priority
            LIMIT ?2
        ) AS waiting
    ),
    (
        SELECT t.ready_at FROM task AS t
        WHERE t.state = 'READY' AND t.hold IS NULL AND t.namespace = lane.namespace
            AND t.route = lane.route AND t.priority = lane.priority
        ORDER BY t.ready_no
        LIMIT 1
    )
FROM (
    SELECT json_extract(value, '$[0]') AS namespace, json_extract(value, '$[1]') AS route,
        json_extract(value, '$[2]') AS priority
    FROM json_each(?1)
) AS lane;

-- name: count_held
-- Index: task_held, no further than counting goes.
SELECT held.route, count(*)
FROM (
    SELECT t.route FROM task AS t
    WHERE t.state = 'READY' AND t.hold IS NOT NULL AND t.namespace = ?1
    LIMIT ?2
) AS held
GROUP BY held.route;

-- name: count_running
-- Index: task_granted, read whole: there are no more than slots.
SELECT t.route, count(*)
FROM task AS t
WHERE t.state IN ('RUNNING', 'CANCELLING') AND t.namespace = ?1
GROUP BY t.route;

-- name: count_all
-- Index: run_open, task_ready, task_held, task_granted, task_backoff, task_dead_letter.
SELECT
    (SELECT count(*) FROM (
        SELECT 1 FROM run AS r WHERE r.namespace = ?1 AND r.ended_at IS NULL LIMIT ?2
    ) AS seen),
    (SELECT count(*) FROM (
        SELECT 1 FROM task AS t
        WHERE t.namespace = ?1 AND t.state = 'READY' AND t.hold IS NULL LIMIT ?2
    ) AS seen),
    (SELECT count(*) FROM (
        SELECT 1 FROM task AS t
        WHERE t.namespace = ?1 AND t.state = 'READY' AND t.hold IS NOT NULL LIMIT ?2
    ) AS seen),
    (SELECT count(*) FROM task AS t
        WHERE t.namespace = ?1 AND t.state IN ('RUNNING', 'CANCELLING')),
    (SELECT count(*) FROM (
        SELECT 1 FROM task AS t WHERE t.namespace = ?1 AND t.state = 'BACKOFF' LIMIT ?2
    ) AS seen),
    (SELECT count(*) FROM (
        SELECT 1 FROM task AS t
        WHERE t.state = 'FAILED' AND (t.discarded_at IS NULL OR t.discarded_at < t.ended_at)
            AND t.namespace = ?1
        LIMIT ?2
    ) AS seen);
