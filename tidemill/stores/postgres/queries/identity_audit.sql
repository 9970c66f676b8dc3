-- name: lock_audit
SELECT number, hash FROM audit_head WHERE id = 1
FOR UPDATE;

-- name: read_audit_head
SELECT number, hash FROM audit_head WHERE id = 1;

-- name: add_audit
INSERT INTO audit
    (number, at, actor, actor_name, action, namespace, target, outcome, address, request_id,
    detail, previous, hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: move_audit_head
UPDATE audit_head SET number = $1, hash = $2 WHERE id = 1;

-- name: list_audit
-- Index: primary key, from its end.
SELECT number, at, actor, actor_name, action, namespace, target, outcome, address, request_id,
    detail, previous, hash
FROM audit
WHERE ($1::TEXT IS NULL OR namespace = $1)
    AND ($2::TEXT IS NULL OR action = $2)
    AND ($3::TEXT IS NULL OR actor = $3)
    AND number < $4
ORDER BY number DESC
LIMIT $5;

-- name: follow_audit
SELECT number, at, actor, actor_name, action, namespace, target, outcome, address, request_id,
    detail, previous, hash
FROM audit
WHERE number > $1
ORDER BY number
LIMIT $2;
