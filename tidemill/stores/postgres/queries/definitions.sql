-- name: add_workflow
INSERT INTO workflow (
    namespace, name, id, title, labels, number, version_id, draft, run_id, created_at, changed_at,
    deleted_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (namespace, name) DO NOTHING;

-- name: lock_workflow
-- Index: primary key.
SELECT namespace, name, id, title, labels, number, version_id, draft, run_id, created_at, changed_at,
    deleted_at
FROM workflow
WHERE namespace = $1 AND name = $2
FOR UPDATE;

-- name: lock_workflow_id
-- Index: workflow_id.
SELECT namespace, name, id, title, labels, number, version_id, draft, run_id, created_at, changed_at,
    deleted_at
FROM workflow
WHERE id = $2 AND namespace = $1
FOR UPDATE;

-- name: save_workflow
-- Index: primary key.
UPDATE workflow SET
    title = $4, labels = $5, number = $6, version_id = $7, draft = $8, run_id = $9,
    changed_at = $11, deleted_at = $12
WHERE namespace = $1 AND name = $2 AND id = $3 AND created_at = $10;

-- name: add_release
INSERT INTO workflow_release (namespace, name, number, version_id, created_at, created_by)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: read_workflow
-- Index: primary key.
SELECT namespace, name, id, title, labels, number, version_id, draft, run_id, created_at, changed_at,
    deleted_at
FROM workflow
WHERE namespace = $1 AND name = $2 AND deleted_at IS NULL;

-- name: read_workflow_by_id
-- Index: workflow_id.
SELECT namespace, name, id, title, labels, number, version_id, draft, run_id, created_at, changed_at,
    deleted_at
FROM workflow
WHERE id = $2 AND namespace = $1 AND deleted_at IS NULL;

-- name: list_workflows
-- Index: primary key, read in order of name until `limit` rows match. $3 is in lower case.
SELECT namespace, name, id, title, labels, number, version_id, draft, run_id, created_at, changed_at,
    deleted_at
FROM workflow
WHERE namespace = $1 AND name > $2 AND deleted_at IS NULL
    AND ($3 = '' OR strpos(lower(name), $3) > 0 OR strpos(lower(title), $3) > 0)
    AND ($4::TEXT IS NULL OR labels::JSONB ->> $4 = $5)
    AND ($6::BOOLEAN OR number > 0)
ORDER BY name
LIMIT $7;

-- name: read_release
-- Index: primary key.
SELECT namespace, name, number, version_id, created_at, created_by
FROM workflow_release
WHERE namespace = $1 AND name = $2 AND number = $3;

-- name: list_releases
-- Index: primary key.
SELECT namespace, name, number, version_id, created_at, created_by
FROM workflow_release
WHERE namespace = $1 AND name = $2 AND number < $3
ORDER BY number DESC
LIMIT $4;
