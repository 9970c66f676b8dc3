-- name: add_version
INSERT INTO workflow_version (id, namespace, name, spec, created_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (id, namespace) DO NOTHING;

-- name: free_keys
-- Index: primary key.
DELETE FROM start_key
WHERE (namespace, kind, key) IN (
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
        FROM json_each(?1)
    )
    AND expires_at <= now_micros()
    AND NOT EXISTS (
        SELECT 1 FROM run WHERE run.id = start_key.run_id AND run.ended_at IS NULL
    )
RETURNING namespace, kind, key;

-- name: take_keys
INSERT INTO start_key (namespace, kind, key, body_hash, run_id, expires_at)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]')
FROM json_each(?1)
WHERE TRUE
ON CONFLICT (namespace, kind, key) DO NOTHING
RETURNING namespace, kind, key;

-- name: read_keys
-- Index: primary key.
SELECT s.namespace, s.kind, s.key, s.body_hash, s.run_id, s.expires_at
FROM json_each(?1) AS wanted
CROSS JOIN start_key AS s
    ON s.namespace = json_extract(wanted.value, '$[0]')
    AND s.kind = json_extract(wanted.value, '$[1]')
    AND s.key = json_extract(wanted.value, '$[2]');

-- name: expired_keys
-- Index: start_key_expiry, then the run by its primary key.
SELECT k.namespace, k.kind, k.key,
    EXISTS (SELECT 1 FROM run AS r WHERE r.id = k.run_id AND r.ended_at IS NULL)
FROM start_key AS k INDEXED BY start_key_expiry
WHERE k.expires_at <= now_micros()
ORDER BY k.expires_at
LIMIT ?1;

-- name: extend_keys
-- Index: primary key.
UPDATE start_key SET expires_at = now_micros() + ?2
WHERE (namespace, kind, key) IN (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
    FROM json_each(?1)
)
RETURNING key;
