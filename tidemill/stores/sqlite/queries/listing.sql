-- Ids of runs, with what a search for text looks at. Each query goes by an index of its own; the
-- other conditions are met by reading on. ?2 and ?3 bound the ids, which are in order of time.

-- name: list_runs_newest
-- turned: list_runs_oldest
-- Index: run_listing.
SELECT r.id, r.workflow, r.key
FROM run AS r INDEXED BY run_listing
WHERE r.namespace = ?1 AND r.id > ?2 AND r.id < ?3
    AND r.created_at >= ?4 AND r.created_at < ?5
    AND (json_array_length(?6) = 0 OR r.state IN (SELECT value FROM json_each(?6)))
    AND (json_array_length(?7) = 0 OR r.kind IN (SELECT value FROM json_each(?7)))
    AND (?8 IS NULL OR r.workflow = ?8)
ORDER BY r.id DESC
LIMIT ?9;

-- name: list_open_runs_newest
-- turned: list_open_runs_oldest
-- Index: run_open.
SELECT r.id, r.workflow, r.key
FROM run AS r INDEXED BY run_open
WHERE r.namespace = ?1 AND r.ended_at IS NULL AND r.id > ?2 AND r.id < ?3
    AND r.created_at >= ?4 AND r.created_at < ?5
    AND (json_array_length(?6) = 0 OR r.state IN (SELECT value FROM json_each(?6)))
    AND (json_array_length(?7) = 0 OR r.kind IN (SELECT value FROM json_each(?7)))
    AND (?8 IS NULL OR r.workflow = ?8)
ORDER BY r.id DESC
LIMIT ?9;

-- name: list_unsuccessful_runs_newest
-- turned: list_unsuccessful_runs_oldest
-- Index: run_unsuccessful.
SELECT r.id, r.workflow, r.key
FROM run AS r INDEXED BY run_unsuccessful
WHERE r.namespace = ?1 AND (r.state = 'FAILED' OR r.state = 'CANCELLED') AND r.state = ?10 AND r.id > ?2 AND r.id < ?3
    AND r.created_at >= ?4 AND r.created_at < ?5
    AND (json_array_length(?6) = 0 OR r.state IN (SELECT value FROM json_each(?6)))
    AND (json_array_length(?7) = 0 OR r.kind IN (SELECT value FROM json_each(?7)))
    AND (?8 IS NULL OR r.workflow = ?8)
ORDER BY r.id DESC
LIMIT ?9;

-- name: list_runs_of_kind_newest
-- turned: list_runs_of_kind_oldest
-- Index: run_by_kind.
SELECT r.id, r.workflow, r.key
FROM run AS r INDEXED BY run_by_kind
WHERE r.namespace = ?1 AND r.kind = ?10 AND r.id > ?2 AND r.id < ?3
    AND r.created_at >= ?4 AND r.created_at < ?5
    AND (json_array_length(?6) = 0 OR r.state IN (SELECT value FROM json_each(?6)))
    AND (json_array_length(?7) = 0 OR r.kind IN (SELECT value FROM json_each(?7)))
    AND (?8 IS NULL OR r.workflow = ?8)
ORDER BY r.id DESC
LIMIT ?9;

-- name: list_runs_of_workflow_newest
-- turned: list_runs_of_workflow_oldest
-- Index: run_by_workflow.
SELECT r.id, r.workflow, r.key
FROM run AS r INDEXED BY run_by_workflow
WHERE r.namespace = ?1 AND r.kind <> 'job' AND r.workflow = ?10 AND r.id > ?2 AND r.id < ?3
    AND r.created_at >= ?4 AND r.created_at < ?5
    AND (json_array_length(?6) = 0 OR r.state IN (SELECT value FROM json_each(?6)))
    AND (json_array_length(?7) = 0 OR r.kind IN (SELECT value FROM json_each(?7)))
    AND (?8 IS NULL OR r.workflow = ?8)
ORDER BY r.id DESC
LIMIT ?9;

-- name: list_labelled_runs_newest
-- turned: list_labelled_runs_oldest
-- Index: primary key of run_label, then that of the run.
SELECT l.run_id, r.workflow, r.key
FROM run_label AS l
CROSS JOIN run AS r ON r.id = l.run_id
WHERE l.namespace = ?1 AND l.name = ?10 AND l.value = ?11 AND l.run_id > ?2 AND l.run_id < ?3
    AND r.created_at >= ?4 AND r.created_at < ?5
    AND (json_array_length(?6) = 0 OR r.state IN (SELECT value FROM json_each(?6)))
    AND (json_array_length(?7) = 0 OR r.kind IN (SELECT value FROM json_each(?7)))
    AND (?8 IS NULL OR r.workflow = ?8)
ORDER BY l.run_id DESC
LIMIT ?9;
