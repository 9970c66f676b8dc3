-- name: read_versions
-- Index: primary key. Row by row: see `lock_tasks`.
SELECT v.*
FROM unnest($1::TEXT[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT v.id, v.namespace, v.name, v.spec, v.created_at
    FROM workflow_version AS v
    WHERE v.id = wanted.id
    OFFSET 0
) AS v;

-- name: read_inputs
-- Index: primary key. Row by row: see `lock_tasks`.
SELECT r.id, r.input
FROM unnest($1::UUID[]) AS wanted (id)
CROSS JOIN LATERAL (SELECT r.id, r.input FROM run AS r WHERE r.id = wanted.id OFFSET 0) AS r;

-- name: read_results
-- Index: primary key. Row by row: see `lock_tasks`.
SELECT d.*
FROM unnest($1::UUID[], $2::INTEGER[]) AS wanted (run_id, position)
CROSS JOIN LATERAL (
    SELECT d.run_id, d.position, d.data
    FROM task_result AS d
    WHERE d.run_id = wanted.run_id AND d.position = wanted.position
    OFFSET 0
) AS d;
