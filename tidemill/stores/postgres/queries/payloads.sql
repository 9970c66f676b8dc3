-- name: read_versions
-- Index: primary key.
SELECT v.id, v.namespace, v.name, v.spec, v.created_at
FROM unnest($1::TEXT[]) AS wanted (id)
JOIN workflow_version AS v ON v.id = wanted.id;

-- name: read_inputs
-- Index: primary key.
SELECT r.id, r.input
FROM unnest($1::UUID[]) AS wanted (id)
JOIN run AS r ON r.id = wanted.id;

-- name: read_results
-- Index: primary key.
SELECT d.run_id, d.position, d.data
FROM unnest($1::UUID[], $2::INTEGER[]) AS wanted (run_id, position)
JOIN task_result AS d ON d.run_id = wanted.run_id AND d.position = wanted.position;
