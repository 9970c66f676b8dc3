-- name: add_version
INSERT INTO workflow_version (id, namespace, name, spec, created_at)
SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::BYTEA[], $5::BIGINT[])
ON CONFLICT (id, namespace) DO NOTHING;

-- name: free_keys
-- Index: primary key.
DELETE FROM start_key AS s
USING (
    SELECT k.namespace, k.kind, k.key
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[]) AS wanted (namespace, kind, key)
    JOIN start_key AS k
        ON k.namespace = wanted.namespace AND k.kind = wanted.kind AND k.key = wanted.key
    WHERE k.expires_at <= now_micros()
        AND NOT EXISTS (SELECT 1 FROM run AS r WHERE r.id = k.run_id AND r.ended_at IS NULL)
    ORDER BY k.namespace, k.kind, k.key
    FOR UPDATE OF k
) AS free
WHERE s.namespace = free.namespace AND s.kind = free.kind AND s.key = free.key
RETURNING s.namespace, s.kind, s.key;

-- name: take_keys
INSERT INTO start_key (namespace, kind, key, body_hash, run_id, expires_at)
SELECT *
FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::UUID[], $6::BIGINT[])
ON CONFLICT (namespace, kind, key) DO NOTHING
RETURNING namespace, kind, key;

-- name: read_keys
-- Index: primary key.
SELECT s.namespace, s.kind, s.key, s.body_hash, s.run_id, s.expires_at
FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[]) AS wanted (namespace, kind, key)
JOIN start_key AS s
    ON s.namespace = wanted.namespace AND s.kind = wanted.kind AND s.key = wanted.key;

-- name: expired_keys
-- Index: start_key_expiry, then the run by its primary key.
SELECT k.namespace, k.kind, k.key,
    EXISTS (SELECT 1 FROM run AS r WHERE r.id = k.run_id AND r.ended_at IS NULL)
FROM start_key AS k
WHERE k.expires_at <= (SELECT now_micros())
ORDER BY k.expires_at
LIMIT $1
FOR UPDATE OF k SKIP LOCKED;

-- name: extend_keys
-- Index: primary key.
UPDATE start_key AS s SET expires_at = now_micros() + $4
FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[]) AS wanted (namespace, kind, key)
WHERE s.namespace = wanted.namespace AND s.kind = wanted.kind AND s.key = wanted.key
RETURNING s.key;
