-- name: add_version
INSERT INTO workflow_version (id, namespace, name, spec, created_at)
SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::BYTEA[], $5::BIGINT[])
ON CONFLICT (id, namespace) DO NOTHING;

-- name: free_keys
-- Index: primary keys. Row by row, in the order of the batch: see `lock_tasks`. A key that somebody
-- else has just prolonged is found at another place, and stays.
DELETE FROM start_key AS s
USING (
    SELECT k.place
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[]) AS wanted (namespace, kind, key)
    CROSS JOIN LATERAL (
        SELECT k.ctid AS place
        FROM start_key AS k
        WHERE k.namespace = wanted.namespace AND k.kind = wanted.kind AND k.key = wanted.key
            AND k.expires_at <= now_micros()
            AND (SELECT r.ended_at IS NULL FROM run AS r WHERE r.id = k.run_id) IS NOT TRUE
        FOR UPDATE
    ) AS k
) AS free
WHERE s.ctid = free.place
RETURNING s.namespace, s.kind, s.key;

-- name: take_keys
INSERT INTO start_key (namespace, kind, key, body_hash, run_id, expires_at)
SELECT *
FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::UUID[], $6::BIGINT[])
ON CONFLICT (namespace, kind, key) DO NOTHING
RETURNING namespace, kind, key;

-- name: read_keys
-- Index: primary key. Row by row: see `lock_tasks`.
SELECT s.*
FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[]) AS wanted (namespace, kind, key)
CROSS JOIN LATERAL (
    SELECT s.namespace, s.kind, s.key, s.body_hash, s.run_id, s.expires_at
    FROM start_key AS s
    WHERE s.namespace = wanted.namespace AND s.kind = wanted.kind AND s.key = wanted.key
    OFFSET 0
) AS s;

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
-- Index: primary key. Row by row, as `save_task`.
UPDATE start_key AS s SET expires_at = now_micros() + $4
FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[]) AS wanted (namespace, kind, key)
CROSS JOIN LATERAL (
    SELECT k.ctid FROM start_key AS k
    WHERE k.namespace = wanted.namespace AND k.kind = wanted.kind AND k.key = wanted.key
    OFFSET 0
) AS k
WHERE s.ctid = k.ctid
RETURNING s.key;
