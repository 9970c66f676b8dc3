-- name: add_task
INSERT INTO task (
    run_id, position, namespace, node, kind, state, epoch, failures, losses, waiting, failed,
    skipped, told, route, priority, hold, due_at, session_id, ready_at, started_at, ended_at,
    ended_no, reason, error, format, ready_no
)
SELECT v.*, CASE WHEN v.state = 'READY' THEN nextval('task_ready_no') END
FROM unnest(
    $1::UUID[], $2::INTEGER[], $3::TEXT[], $4::INTEGER[], $5::TEXT[], $6::TEXT[], $7::INTEGER[],
    $8::INTEGER[], $9::INTEGER[], $10::INTEGER[], $11::INTEGER[],
    $12::INTEGER[], $13::INTEGER[], $14::TEXT[], $15::INTEGER[], $16::TEXT[], $17::BIGINT[],
    $18::TEXT[], $19::BIGINT[], $20::BIGINT[], $21::BIGINT[],
    $22::INTEGER[], $23::TEXT[], $24::TEXT[], $25::INTEGER[]
) AS v (
    run_id, position, namespace, node, kind, state, epoch,
    failures, losses, waiting, failed,
    skipped, told, route, priority, hold, due_at,
    session_id, ready_at, started_at, ended_at,
    ended_no, reason, error, format
)
ON CONFLICT (run_id, position) DO NOTHING;

-- name: add_tasks_alike
-- Tasks of runs that begin alike: each run gets those with its number, in order.
INSERT INTO task (
    run_id, position, namespace, node, kind, state, epoch, failures, losses, waiting, failed,
    skipped, told, route, priority, hold, due_at, session_id, ready_at, started_at, ended_at,
    ended_no, reason, error, format, ready_no
)
SELECT
    v.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format,
    CASE WHEN t.state = 'READY' THEN nextval('task_ready_no') END
FROM unnest(string_to_array($1, ',')::UUID[], string_to_array($2, ',')::INTEGER[])
    AS v (run_id, number)
CROSS JOIN LATERAL (
    SELECT *
    FROM unnest(
        $3::INTEGER[], $4::INTEGER[], $5::TEXT[], $6::INTEGER[], $7::TEXT[], $8::TEXT[],
        $9::INTEGER[], $10::INTEGER[], $11::INTEGER[], $12::INTEGER[], $13::INTEGER[],
        $14::INTEGER[], $15::INTEGER[], $16::TEXT[], $17::INTEGER[], $18::TEXT[], $19::BIGINT[],
        $20::TEXT[], $21::BIGINT[], $22::BIGINT[], $23::BIGINT[], $24::INTEGER[], $25::TEXT[],
        $26::TEXT[], $27::INTEGER[]
    ) AS t (
        number, position, namespace, node, kind, state, epoch, failures, losses, waiting, failed,
        skipped, told, route, priority, hold, due_at, session_id, ready_at, started_at, ended_at,
        ended_no, reason, error, format
    )
    WHERE t.number = v.number
    OFFSET 0
) AS t;

-- name: lock_tasks
-- Index: primary key. Row by row, in the order of the batch: a plain join is planned once, perhaps
-- while the table is empty, and would then read all of it for ever.
SELECT t.*
FROM unnest($1::UUID[], $2::INTEGER[]) AS wanted (run_id, position)
CROSS JOIN LATERAL (
    SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
        t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
        t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
    FROM task AS t
    WHERE t.run_id = wanted.run_id AND t.position = wanted.position AND t.format <= $3
    FOR UPDATE
) AS t;

-- name: lock_task_states
-- Index: primary key, read in order of position until `limit` rows match.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM task AS t
WHERE t.run_id = $2 AND t.state = ANY($1::TEXT[]) AND t.format <= $4
ORDER BY t.position
LIMIT $3
FOR UPDATE;

-- name: lock_ready_tasks
-- Index: primary key, read in order of position until `limit` rows match.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM task AS t
WHERE t.run_id = $1 AND t.position >= $3 AND t.state = 'READY'
    AND (t.hold IS NOT DISTINCT FROM 'paused') = $2::BOOLEAN AND t.format <= $5
ORDER BY t.position
LIMIT $4
FOR UPDATE;

-- name: lock_untold_tasks
-- Index: task_untold.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM task AS t
WHERE t.run_id = $1 AND t.told IS NOT NULL AND t.format <= $3
ORDER BY t.position
LIMIT $2
FOR UPDATE;

-- name: claim_ready
-- Index: task_ready, then the run by its primary key. A small input comes along.
SELECT r.*,
    t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format, t.ready_no
FROM task AS t
CROSS JOIN LATERAL (
    SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
        r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
        r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
        r.kind, r.key, r.swept, CASE WHEN octet_length(r.input) <= $7 THEN r.input END
    FROM run AS r
    WHERE r.id = t.run_id AND r.quarantine IS NULL AND r.format <= $6
    OFFSET 0
) AS r
WHERE t.state = 'READY' AND t.hold IS NULL
    AND t.namespace = $1 AND t.route = $2 AND t.priority = $3 AND t.ready_no >= $4
    AND t.format <= $6
ORDER BY t.ready_no
LIMIT $5
FOR UPDATE OF t SKIP LOCKED;

-- name: claim_ready_alone
-- Index: task_ready_alone, then the run by its primary key. A small input comes along.
SELECT r.*,
    t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format, t.ready_no
FROM task AS t
CROSS JOIN LATERAL (
    SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
        r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
        r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
        r.kind, r.key, r.swept, CASE WHEN octet_length(r.input) <= $7 THEN r.input END
    FROM run AS r
    WHERE r.id = t.run_id AND r.quarantine IS NULL AND r.format <= $6
    OFFSET 0
) AS r
WHERE t.state = 'READY' AND t.hold = 'alone'
    AND t.namespace = $1 AND t.route = $2 AND t.priority = $3 AND t.ready_no >= $4
    AND t.format <= $6
ORDER BY t.ready_no
LIMIT $5
FOR UPDATE OF t SKIP LOCKED;

-- name: save_task
-- Index: primary key. Row by row, as in `lock_tasks`, and from there by the place of the row: it is
-- locked, so that does not change meanwhile. What comes back from a worker keeps its place in its
-- lane.
UPDATE task AS t SET
    state = v.state, epoch = v.epoch, failures = v.failures, losses = v.losses,
    waiting = v.waiting, failed = v.failed, skipped = v.skipped, told = v.told, route = v.route,
    priority = v.priority, hold = v.hold, due_at = v.due_at, session_id = v.session_id,
    ready_at = v.ready_at, started_at = v.started_at, ended_at = v.ended_at,
    ended_no = v.ended_no, reason = v.reason, error = v.error, format = v.format,
    ready_no = CASE
        WHEN v.state <> 'READY' THEN t.ready_no
        WHEN t.state = 'RUNNING' THEN coalesce(t.ready_no, nextval('task_ready_no'))
        WHEN t.state = 'READY' AND t.hold IS NOT DISTINCT FROM v.hold THEN t.ready_no
        ELSE nextval('task_ready_no')
    END
FROM unnest(
    $1::UUID[], $2::INTEGER[], $3::TEXT[], $4::INTEGER[], $5::INTEGER[], $6::INTEGER[],
    $7::INTEGER[], $8::INTEGER[], $9::INTEGER[], $10::INTEGER[], $11::TEXT[],
    $12::INTEGER[], $13::TEXT[], $14::BIGINT[], $15::TEXT[],
    $16::BIGINT[], $17::BIGINT[], $18::BIGINT[],
    $19::INTEGER[], $20::TEXT[], $21::TEXT[], $22::INTEGER[]
) AS v (
    run_id, position, state, epoch, failures, losses,
    waiting, failed, skipped, told, route,
    priority, hold, due_at, session_id,
    ready_at, started_at, ended_at,
    ended_no, reason, error, format
)
CROSS JOIN LATERAL (
    SELECT k.ctid FROM task AS k WHERE k.run_id = v.run_id AND k.position = v.position OFFSET 0
) AS k
WHERE t.ctid = k.ctid;
