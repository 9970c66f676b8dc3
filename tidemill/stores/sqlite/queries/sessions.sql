-- name: open_session
INSERT INTO session (
    id, namespace, worker, scheduler, secret_hash, slots, queues, labels, opened_at, expires_at,
    closed_at, successor, offers
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (id) DO NOTHING;

-- name: get_session
SELECT id, namespace, worker, scheduler, secret_hash, slots, queues, labels, opened_at, expires_at,
    closed_at, successor, offers
FROM session
WHERE id = ?1;

-- name: lock_sessions
-- Index: primary key.
SELECT s.id
FROM json_each(?1) AS wanted
CROSS JOIN session AS s ON s.id = json_extract(wanted.value, '$[0]')
WHERE s.closed_at IS NULL AND s.expires_at > now_micros();

-- name: lock_pools
-- Index: primary key.
SELECT s.id
FROM json_each(?1) AS wanted
CROSS JOIN session AS s ON s.id = json_extract(wanted.value, '$[0]')
WHERE s.closed_at IS NULL;

-- name: count_granted
-- Index: task_granted.
SELECT t.session_id, count(*)
FROM json_each(?1) AS wanted
CROSS JOIN task AS t INDEXED BY task_granted ON t.session_id = json_extract(wanted.value, '$[0]')
WHERE t.state IN ('RUNNING', 'CANCELLING')
GROUP BY t.session_id;

-- name: granted_tasks
-- Index: task_granted. Runs in quarantine too: their grants are as real as others.
SELECT t.run_id, t.position, t.epoch, t.started_at, t.state = 'CANCELLING'
FROM task AS t INDEXED BY task_granted
WHERE t.session_id = ?1 AND t.state IN ('RUNNING', 'CANCELLING')
ORDER BY t.run_id, t.position;

-- name: renew_sessions_for
-- Index: primary key.
UPDATE session SET expires_at = now_micros() + ?2
WHERE id IN (SELECT json_extract(value, '$[0]') FROM json_each(?1)) AND closed_at IS NULL
RETURNING id;

-- name: lock_sessions_to_close
SELECT s.id
FROM json_each(?1) AS wanted
CROSS JOIN session AS s ON s.id = json_extract(wanted.value, '$[0]');

-- name: close_sessions
-- Index: primary key.
UPDATE session SET closed_at = now_micros()
WHERE id IN (SELECT json_extract(value, '$[0]') FROM json_each(?1)) AND closed_at IS NULL
RETURNING id;

-- name: replace_session
-- Index: primary key.
UPDATE session SET closed_at = coalesce(closed_at, now_micros()), successor = ?2
WHERE id = ?1;

-- name: close_all_sessions
-- But pools: nobody runs what they hold.
UPDATE session SET closed_at = now_micros() WHERE closed_at IS NULL AND id NOT LIKE 'pool-%';

-- name: prune_sessions
-- Index: task_granted, for each session looked at.
DELETE FROM session
WHERE id IN (
    SELECT s.id
    FROM session AS s
    WHERE (s.closed_at < ?1 OR s.expires_at < ?1)
        AND NOT EXISTS (
            SELECT 1 FROM task AS t INDEXED BY task_granted
            WHERE t.session_id = s.id AND t.state IN ('RUNNING', 'CANCELLING')
        )
    LIMIT ?2
);
