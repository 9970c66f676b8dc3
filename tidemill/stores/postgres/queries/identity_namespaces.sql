-- name: add_namespace
INSERT INTO namespace (name, default_executor, settings, created_at, created_by)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING;

-- name: save_namespace
UPDATE namespace SET default_executor = $2, settings = $3 WHERE name = $1;

-- name: list_namespaces
SELECT name, default_executor, settings, created_at, created_by
FROM namespace
WHERE name > $1
ORDER BY name
LIMIT $2;

-- name: get_namespace
SELECT name, default_executor, settings, created_at, created_by
FROM namespace
WHERE name = $1;

-- name: find_namespaces
SELECT n.name
FROM unnest($1::TEXT[]) AS wanted (id)
JOIN namespace AS n ON n.name = wanted.id;

-- name: keep_value
INSERT INTO identity_value (name, value) VALUES ($1, $2)
ON CONFLICT DO NOTHING;

-- name: replace_value
INSERT INTO identity_value (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: get_value
SELECT value FROM identity_value WHERE name = $1;
