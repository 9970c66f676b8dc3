-- name: put_secret
INSERT INTO secret (namespace, name, sealed, created_at, changed_at)
SELECT ?1, ?2, ?3, n.now, n.now FROM (SELECT now_micros() AS now) AS n
WHERE true
ON CONFLICT (namespace, name) DO UPDATE
SET sealed = excluded.sealed, changed_at = max(excluded.changed_at, secret.created_at + 1)
RETURNING created_at, changed_at;

-- name: remove_secret
DELETE FROM secret WHERE namespace = ?1 AND name = ?2;

-- name: list_secrets
-- Index: primary key.
SELECT name, created_at, changed_at FROM secret WHERE namespace = ?1 ORDER BY name LIMIT ?2;

-- name: read_secrets
-- Index: primary key.
SELECT s.namespace, s.name, s.sealed
FROM json_each(?1) AS wanted
CROSS JOIN secret AS s
    ON s.namespace = json_extract(wanted.value, '$[0]')
    AND s.name = json_extract(wanted.value, '$[1]');
