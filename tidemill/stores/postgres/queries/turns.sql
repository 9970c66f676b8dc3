-- What a turn begins and ends with, each in one statement.

-- name: open_turn
-- Index: primary keys. One row for each task, behind its run, or for a run without tasks; one empty
-- row when no run is had. Behind them in every row: the sessions, and the clock, read once.
--
-- Locks are had in the order that everyone keeps to, sessions, runs, tasks, since each part needs
-- the outcome of the part before: the first run is not looked at before the sessions are counted,
-- nor the first task before all runs are.
--
-- All parts see the state before the statement. But a row that is locked is read, and judged, as
-- it is when the lock is had: what another transaction changed in between comes back changed. Only
-- a row that was not there at all before the statement is not found. That is as it should be:
-- nobody has news of a task before it is committed, and rows that are missing are asked for again.
--
-- Ids and positions come as texts: a driver takes longer to write that many elements of arrays.
-- Positions are looked for one by one: given as a list, a plan made for an empty table reads all
-- tasks of the run.
WITH alive AS MATERIALIZED (
    SELECT s.id
    FROM unnest($1::TEXT[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT s.id FROM session AS s
        WHERE s.id = wanted.id AND s.closed_at IS NULL AND s.expires_at > now_micros()
        FOR KEY SHARE
    ) AS s
), had AS MATERIALIZED (
    SELECT r.*, wanted.positions
    FROM unnest(string_to_array($2, ','), string_to_array($3, ',')) AS wanted (id, positions)
    CROSS JOIN LATERAL (
        SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
            r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
            r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason,
            r.format, r.kind, r.key, r.swept
        FROM run AS r
        WHERE r.id = wanted.id::UUID AND r.quarantine IS NULL AND r.format <= $4
        FOR UPDATE SKIP LOCKED
    ) AS r
    WHERE (SELECT count(*) FROM alive) >= 0
)
SELECT
    r.id::TEXT, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
    r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
    r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
    r.kind, r.key, r.swept, t.*, (SELECT string_agg(alive.id, ',') FROM alive),
    (SELECT now_micros())
FROM (VALUES (1)) AS turn
LEFT JOIN had AS r ON TRUE
LEFT JOIN LATERAL (
    SELECT t.*
    FROM unnest(string_to_array(r.positions, ' ')::INTEGER[]) AS wanted (position)
    CROSS JOIN LATERAL (
        SELECT t.run_id::TEXT, t.position, t.namespace, t.node, t.kind, t.state, t.epoch,
            t.failures, t.losses, t.waiting, t.failed, t.skipped, t.told, t.route, t.priority,
            t.hold, t.due_at, t.session_id, t.ready_at, t.started_at, t.ended_at, t.ended_no,
            t.reason, t.error, t.format
        FROM task AS t
        WHERE t.run_id = r.id AND t.position = wanted.position AND t.format <= $4
            AND (SELECT count(*) FROM had) >= 0
        FOR UPDATE
    ) AS t
) AS t ON TRUE;

-- name: write_turn
-- Index: primary keys. The parts are written in no given order, and none sees what another one
-- writes: what is changed here was locked, and so read, by an earlier statement. Tasks and runs
-- come as JSON objects, as they are: a driver takes longer to write that many arrays. What is as it
-- mostly is, the default of the field, is left out. What comes back from a worker keeps its place
-- in its lane.
WITH saved_tasks AS (
    UPDATE task AS t SET
        state = v.state, epoch = coalesce(v.epoch, 0), failures = coalesce(v.failures, 0),
        losses = coalesce(v.losses, 0), waiting = coalesce(v.waiting, 0),
        failed = coalesce(v.failed, 0), skipped = coalesce(v.skipped, 0), told = v.told,
        route = v.route, priority = coalesce(v.priority, 0), hold = v.hold, due_at = v.due_at,
        session_id = v.session_id, ready_at = v.ready_at, started_at = v.started_at,
        ended_at = v.ended_at, ended_no = v.ended_no, reason = v.reason, error = NULL,
        format = coalesce(v.format, 1),
        ready_no = CASE
            WHEN v.state <> 'READY' THEN t.ready_no
            WHEN t.state = 'RUNNING' THEN coalesce(t.ready_no, nextval('task_ready_no'))
            WHEN t.state = 'READY' AND t.hold IS NOT DISTINCT FROM v.hold THEN t.ready_no
            ELSE nextval('task_ready_no')
        END
    FROM json_to_recordset($1::JSON) AS v (
        run_id UUID, position INTEGER, state TEXT, epoch INTEGER, failures INTEGER,
        losses INTEGER, waiting INTEGER, failed INTEGER, skipped INTEGER, told INTEGER,
        route TEXT, priority INTEGER, hold TEXT, due_at BIGINT, session_id TEXT, ready_at BIGINT,
        started_at BIGINT, ended_at BIGINT, ended_no INTEGER, reason TEXT, format INTEGER
    )
    CROSS JOIN LATERAL (
        SELECT k.ctid FROM task AS k WHERE k.run_id = v.run_id AND k.position = v.position OFFSET 0
    ) AS k
    WHERE t.ctid = k.ctid
), saved_runs AS (
    UPDATE run AS r SET
        state = v.state, open = v.open, failed = coalesce(v.failed, 0),
        ended = coalesce(v.ended, 0), next_position = v.next_position, told = v.told,
        stop = v.stop, generation = coalesce(v.generation, 1), due_at = v.due_at,
        started_at = v.started_at, ended_at = v.ended_at, reason = v.reason,
        format = coalesce(v.format, 1), swept = v.swept
    FROM json_to_recordset($2::JSON) AS v (
        id UUID, state TEXT, open INTEGER, failed INTEGER, ended INTEGER, next_position INTEGER,
        told INTEGER, stop TEXT, generation INTEGER, due_at BIGINT, started_at BIGINT,
        ended_at BIGINT, reason TEXT, format INTEGER, swept INTEGER
    )
    CROSS JOIN LATERAL (
        SELECT k.ctid FROM run AS k WHERE k.id = v.id OFFSET 0
    ) AS k
    WHERE r.ctid = k.ctid
), added_results AS (
    INSERT INTO task_result (run_id, position, namespace, data)
    SELECT *
    FROM ROWS FROM (
        json_to_recordset($3::JSON) AS (run_id UUID, position INTEGER, namespace TEXT),
        unnest($4::BYTEA[])
    )
), told AS (
    INSERT INTO outbox (facts, created_at)
    SELECT v.facts, now_micros() FROM unnest($5::BYTEA[]) AS v (facts)
    RETURNING number
)
SELECT max(number) FROM told;
