-- name: read_versions
-- Index: primary key.
SELECT v.id, v.namespace, v.name, v.spec, v.created_at
FROM json_each(?1) AS wanted
CROSS JOIN workflow_version AS v ON v.id = json_extract(wanted.value, '$[0]');

-- name: read_inputs
-- Index: primary key.
SELECT r.id, r.input
FROM json_each(?1) AS wanted
CROSS JOIN run AS r ON r.id = json_extract(wanted.value, '$[0]');

-- name: read_results
-- Index: primary key.
SELECT d.run_id, d.position, d.data
FROM json_each(?1) AS wanted
CROSS JOIN task_result AS d
    ON d.run_id = json_extract(wanted.value, '$[0]')
    AND d.position = json_extract(wanted.value, '$[1]');
