-- name: add_run
INSERT INTO run (
    id, namespace, workflow, version_id, state, open, failed, ended, next_position, told, stop,
    generation, quarantine, labels, parent_run, parent_position, created_at, due_at, started_at,
    ended_at, reason, format, kind, key, swept, input
)
SELECT *
FROM unnest(
    $1::UUID[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::INTEGER[], $7::INTEGER[],
    $8::INTEGER[], $9::INTEGER[], $10::INTEGER[], $11::TEXT[],
    $12::INTEGER[], $13::TEXT[], $14::TEXT[], $15::UUID[], $16::INTEGER[], $17::BIGINT[],
    $18::BIGINT[], $19::BIGINT[],
    $20::BIGINT[], $21::TEXT[], $22::INTEGER[], $23::TEXT[], $24::TEXT[], $25::INTEGER[],
    $26::BYTEA[]
);

-- name: add_runs_alike
-- For runs that differ in id, key and input only: the rest is the n-th of each array. Ids and these
-- numbers come as texts: a driver takes longer to write that many elements of arrays.
INSERT INTO run (
    id, key, input, namespace, workflow, version_id, state, open, failed, ended, next_position,
    told, stop, generation, quarantine, labels, parent_run, parent_position, created_at, due_at,
    started_at, ended_at, reason, format, kind, swept
)
SELECT
    v.id, v.key, v.input, ($5::TEXT[])[v.alike], ($6::TEXT[])[v.alike], ($7::TEXT[])[v.alike],
    ($8::TEXT[])[v.alike], ($9::INTEGER[])[v.alike], ($10::INTEGER[])[v.alike],
    ($11::INTEGER[])[v.alike], ($12::INTEGER[])[v.alike], ($13::INTEGER[])[v.alike],
    ($14::TEXT[])[v.alike], ($15::INTEGER[])[v.alike], ($16::TEXT[])[v.alike],
    ($17::TEXT[])[v.alike], ($18::UUID[])[v.alike], ($19::INTEGER[])[v.alike],
    ($20::BIGINT[])[v.alike], ($21::BIGINT[])[v.alike], ($22::BIGINT[])[v.alike],
    ($23::BIGINT[])[v.alike], ($24::TEXT[])[v.alike], ($25::INTEGER[])[v.alike],
    ($26::TEXT[])[v.alike], ($27::INTEGER[])[v.alike]
FROM unnest(
    string_to_array($1, ',')::UUID[], string_to_array($2, ',')::INTEGER[], $3::TEXT[], $4::BYTEA[]
) AS v (id, alike, key, input);

-- name: add_run_label
INSERT INTO run_label (namespace, name, value, run_id)
SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::UUID[])
ON CONFLICT DO NOTHING;

-- name: lock_runs_waiting
-- Index: primary key. Row by row, in the order of the batch: see `lock_tasks`.
SELECT r.*
FROM unnest($1::UUID[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
        r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
        r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
        r.kind, r.key, r.swept
    FROM run AS r
    WHERE r.id = wanted.id AND r.quarantine IS NULL AND r.format <= $2
    FOR UPDATE
) AS r;

-- name: lock_runs_skipping
-- Index: primary key.
SELECT r.*
FROM unnest($1::UUID[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
        r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
        r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
        r.kind, r.key, r.swept
    FROM run AS r
    WHERE r.id = wanted.id AND r.quarantine IS NULL AND r.format <= $2
    FOR UPDATE SKIP LOCKED
) AS r;

-- name: peek_runs
-- Index: primary key. The offset keeps it from becoming a plain join: see `lock_tasks`.
SELECT r.*
FROM unnest($1::UUID[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
        r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
        r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
        r.kind, r.key, r.swept
    FROM run AS r
    WHERE r.id = wanted.id AND r.quarantine IS NULL AND r.format <= $2
    OFFSET 0
) AS r;

-- name: save_run
-- Index: primary key. Row by row, as `save_task`.
UPDATE run AS r SET
    state = v.state, open = v.open, failed = v.failed, ended = v.ended,
    next_position = v.next_position, told = v.told, stop = v.stop, generation = v.generation,
    due_at = v.due_at, started_at = v.started_at, ended_at = v.ended_at, reason = v.reason,
    format = v.format, swept = v.swept
FROM unnest(
    $1::UUID[], $2::TEXT[], $3::INTEGER[], $4::INTEGER[], $5::INTEGER[], $6::INTEGER[],
    $7::INTEGER[], $8::TEXT[], $9::INTEGER[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[],
    $13::TEXT[], $14::INTEGER[], $15::INTEGER[]
) AS v (
    id, state, open, failed, ended, next_position,
    told, stop, generation, due_at, started_at, ended_at,
    reason, format, swept
)
CROSS JOIN LATERAL (
    SELECT k.ctid FROM run AS k WHERE k.id = v.id OFFSET 0
) AS k
WHERE r.ctid = k.ctid;

-- name: quarantine_run
UPDATE run SET quarantine = $2 WHERE id = $1;

-- name: hold_tasks
-- Index: primary key. A hold that is there already comes back when the quarantine ends.
UPDATE task
SET hold = CASE WHEN hold IS NULL THEN 'quarantined' ELSE 'quarantined:' || hold END
WHERE run_id = $1 AND state = 'READY' AND (hold IS NULL OR NOT starts_with(hold, 'quarantined'));

-- name: release_run
UPDATE run SET quarantine = NULL WHERE id = $1 AND quarantine IS NOT NULL;

-- name: unhold_tasks
-- Index: primary key. They go last: whoever claims has passed their old places.
UPDATE task
SET hold = CASE WHEN hold = 'quarantined' THEN NULL ELSE substr(hold, 13) END,
    ready_no = nextval('task_ready_no')
WHERE run_id = $1 AND state = 'READY' AND starts_with(hold, 'quarantined');
