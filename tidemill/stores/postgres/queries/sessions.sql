-- name: open_session
INSERT INTO session (
    id, namespace, worker, scheduler, secret_hash, slots, queues, labels, opened_at, expires_at,
    closed_at, successor, offers
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (id) DO NOTHING;

-- name: get_session
SELECT id, namespace, worker, scheduler, secret_hash, slots, queues, labels, opened_at, expires_at,
    closed_at, successor, offers
FROM session
WHERE id = $1
FOR UPDATE;

-- name: lock_sessions
-- Index: primary key. A key share lock lets the expiry move, and nothing else.
SELECT s.id
FROM unnest($1::TEXT[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT s.id FROM session AS s
    WHERE s.id = wanted.id AND s.closed_at IS NULL AND s.expires_at > now_micros()
    FOR KEY SHARE
) AS s;

-- name: lock_pools
-- Index: primary key. Whoever grants to a pool holds it alone.
SELECT id FROM session WHERE id = ANY($1::TEXT[]) AND closed_at IS NULL
ORDER BY id
FOR NO KEY UPDATE;

-- name: count_granted
-- Index: task_granted.
SELECT session_id, count(*)
FROM task
WHERE session_id = ANY($1::TEXT[]) AND state IN ('RUNNING', 'CANCELLING')
GROUP BY session_id;

-- name: granted_tasks
-- Index: task_granted. Runs in quarantine too: their grants are as real as others.
SELECT t.run_id, t.position, t.epoch, t.started_at, t.state = 'CANCELLING'
FROM task AS t
WHERE t.session_id = $1 AND t.state IN ('RUNNING', 'CANCELLING')
ORDER BY t.run_id, t.position;

-- name: renew_sessions_for
-- Index: primary key.
UPDATE session AS s SET expires_at = now_micros() + $2
FROM (
    SELECT id FROM session
    WHERE id = ANY($1::TEXT[]) AND closed_at IS NULL
    ORDER BY id
    FOR NO KEY UPDATE
) AS wanted
WHERE s.id = wanted.id
RETURNING s.id;

-- name: lock_sessions_to_close
-- Index: primary key. Waits for the turns that keep these sessions from being closed.
SELECT id FROM session WHERE id = ANY($1::TEXT[]) ORDER BY id FOR UPDATE;

-- name: close_sessions
-- Index: primary key.
UPDATE session SET closed_at = now_micros()
WHERE id = ANY($1::TEXT[]) AND closed_at IS NULL
RETURNING id;

-- name: replace_session
-- Index: primary key.
UPDATE session SET closed_at = coalesce(closed_at, now_micros()), successor = $2
WHERE id = $1;

-- name: close_all_sessions
-- But pools: nobody runs what they hold.
UPDATE session SET closed_at = now_micros()
WHERE id IN (
    SELECT id FROM session
    WHERE closed_at IS NULL AND id NOT LIKE 'pool-%'
    ORDER BY id
    FOR UPDATE
);

-- name: prune_sessions
-- Index: task_granted, for each session looked at.
DELETE FROM session
WHERE id IN (
    SELECT s.id
    FROM session AS s
    WHERE (s.closed_at < $1 OR s.expires_at < $1)
        AND NOT EXISTS (
            SELECT 1 FROM task AS t
            WHERE t.session_id = s.id AND t.state IN ('RUNNING', 'CANCELLING')
        )
    ORDER BY s.id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
);
