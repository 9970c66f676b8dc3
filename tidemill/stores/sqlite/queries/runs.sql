-- name: add_run
INSERT INTO run (
    id, namespace, workflow, version_id, state, open, failed, ended, next_position, told, stop,
    generation, quarantine, labels, parent_run, parent_position, created_at, due_at, started_at,
    ended_at, reason, format, kind, key, swept, input
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
    ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    ?20, ?21, ?22, ?23, ?24, ?25, ?26
);

-- name: add_runs_alike
-- For runs that differ in id, key and input only.
INSERT INTO run (
    id, key, input, namespace, workflow, version_id, state, open, failed, ended, next_position,
    told, stop, generation, quarantine, labels, parent_run, parent_position, created_at, due_at,
    started_at, ended_at, reason, format, kind, swept
)
SELECT
    json_extract(v.value, '$[0]'), json_extract(v.value, '$[2]'),
    CAST(json_extract(v.value, '$[3]') AS BLOB), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
    ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
    ?19, ?20, ?21, ?22, ?23, ?24
FROM json_each(?1) AS v;

-- name: add_run_label
INSERT INTO run_label (namespace, name, value, run_id)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO NOTHING;

-- name: lock_runs_waiting
-- Index: primary key. There is one writer: whoever is in a transaction has all the locks.
SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
    r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
    r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
    r.kind, r.key, r.swept
FROM json_each(?1) AS wanted
CROSS JOIN run AS r ON r.id = json_extract(wanted.value, '$[0]')
WHERE r.quarantine IS NULL AND r.format <= ?2
ORDER BY r.id;

-- name: lock_runs_skipping
-- Index: primary key.
SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
    r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
    r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
    r.kind, r.key, r.swept
FROM json_each(?1) AS wanted
CROSS JOIN run AS r ON r.id = json_extract(wanted.value, '$[0]')
WHERE r.quarantine IS NULL AND r.format <= ?2
ORDER BY r.id;

-- name: peek_runs
-- Index: primary key.
SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
    r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
    r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
    r.kind, r.key, r.swept
FROM json_each(?1) AS wanted
CROSS JOIN run AS r ON r.id = json_extract(wanted.value, '$[0]')
WHERE r.quarantine IS NULL AND r.format <= ?2
ORDER BY r.id;

-- name: save_run
-- Index: primary key. Takes many rows.
WITH new (
    id, state, open, failed, ended, next_position, told, stop, generation, due_at, started_at,
    ended_at, reason, format, swept
) AS (VALUES
    (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE run SET
    state = new.state, open = new.open, failed = new.failed, ended = new.ended,
    next_position = new.next_position, told = new.told, stop = new.stop,
    generation = new.generation, due_at = new.due_at, started_at = new.started_at,
    ended_at = new.ended_at, reason = new.reason, format = new.format, swept = new.swept
FROM new
WHERE run.id = new.id;

-- name: quarantine_run
UPDATE run SET quarantine = ?2 WHERE id = ?1;

-- name: hold_tasks
-- Index: primary key. A hold that is there already comes back when the quarantine ends.
UPDATE task
SET hold = CASE WHEN hold IS NULL THEN 'quarantined' ELSE 'quarantined:' || hold END
WHERE run_id = ?1 AND state = 'READY'
    AND (hold IS NULL OR substr(hold, 1, 11) <> 'quarantined');

-- name: release_run
UPDATE run SET quarantine = NULL WHERE id = ?1 AND quarantine IS NOT NULL;

-- name: unhold_tasks
-- Index: primary key. They go last: whoever claims has passed their old places.
UPDATE task
SET hold = CASE WHEN hold = 'quarantined' THEN NULL ELSE substr(hold, 13) END,
    ready_no = next_ready_no()
WHERE run_id = ?1 AND state = 'READY' AND substr(hold, 1, 11) = 'quarantined';
