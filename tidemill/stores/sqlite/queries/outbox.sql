-- name: append_facts
INSERT INTO outbox (facts, created_at) VALUES (?1, now_micros())
RETURNING number;

-- name: take_lead
INSERT INTO leader (name, holder, until_at) VALUES (?1, ?2, now_micros() + ?3)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at
WHERE leader.holder = excluded.holder OR leader.until_at <= now_micros()
RETURNING name;

-- name: lock_stamped
-- Index: outbox_unstamped. What waits first is asked along: most of the time nothing does.
SELECT
    position,
    (
        SELECT number FROM outbox INDEXED BY outbox_unstamped
        WHERE position IS NULL AND number >= ?1 ORDER BY number LIMIT 1
    ) AS first
FROM outbox_cursor
WHERE name = '$stamped';

-- name: stamp_outbox
-- Index: outbox_unstamped.
UPDATE outbox
SET position = ?1 + fresh.rank
FROM (
    SELECT number, row_number() OVER (ORDER BY number) AS rank
    FROM (
        SELECT number FROM outbox INDEXED BY outbox_unstamped
        WHERE position IS NULL AND number >= ?3 ORDER BY number LIMIT ?2
    )
) AS fresh
WHERE outbox.number = fresh.number;

-- name: move_stamped
UPDATE outbox_cursor SET position = ?1 WHERE name = '$stamped';

-- name: read_outbox
-- Index: outbox_position.
SELECT number, position, facts
FROM outbox INDEXED BY outbox_position
WHERE position > ?1
ORDER BY position
LIMIT ?2;

-- name: read_cursor
SELECT position FROM outbox_cursor WHERE name = ?1;

-- name: move_cursor
INSERT INTO outbox_cursor (name, position) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET position = max(outbox_cursor.position, excluded.position);

-- name: pass_over
INSERT INTO outbox_cursor (name, position)
SELECT ?1, stamped.position FROM outbox_cursor AS stamped WHERE stamped.name = '$stamped'
ON CONFLICT (name) DO UPDATE SET position = excluded.position;

-- name: prune_outbox
-- Index: outbox_position. Looks at the oldest rows only: they are the first to leave, and when
-- the oldest may not, none may. Without any reader nothing leaves.
DELETE FROM outbox
WHERE number IN (
    SELECT number FROM (
        SELECT number, created_at FROM outbox INDEXED BY outbox_position
        WHERE position <= (SELECT min(position) FROM outbox_cursor WHERE name <> '$stamped')
        ORDER BY position
        LIMIT ?2
    )
    WHERE created_at < ?1
);

-- name: read_floor
-- Index: outbox_position.
SELECT min(position) FROM outbox WHERE position IS NOT NULL;
