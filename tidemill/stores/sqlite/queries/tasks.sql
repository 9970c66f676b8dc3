-- name: add_task
INSERT INTO task (
    run_id, position, namespace, node, kind, state, epoch, failures, losses, waiting, failed,
    skipped, told, route, priority, hold, due_at, session_id, ready_at, started_at, ended_at,
    ended_no, reason, error, format, ready_no
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
    ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
    ?22, ?23, ?24, ?25, CASE WHEN ?6 = 'READY' THEN next_ready_no() END
)
ON CONFLICT (run_id, position) DO NOTHING;

-- name: take_places
SELECT take_ready_nos(?1);

-- name: add_tasks_alike
-- One task of runs that begin alike. Its place in the lane, if it is READY, follows from that of its
-- run among them: `?26` is the first one of all, `?27` how many each run has.
INSERT INTO task (
    run_id, position, namespace, node, kind, state, epoch, failures, losses, waiting, failed,
    skipped, told, route, priority, hold, due_at, session_id, ready_at, started_at, ended_at,
    ended_no, reason, error, format, ready_no
)
SELECT
    json_extract(v.value, '$[0]'), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
    ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
    ?22, ?23, ?24, ?25,
    CASE WHEN ?6 = 'READY' THEN ?26 + ?27 * json_extract(v.value, '$[1]') END
FROM json_each(?1) AS v;

-- name: lock_tasks
-- Index: primary key.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM json_each(?1) AS wanted
CROSS JOIN task AS t
    ON t.run_id = json_extract(wanted.value, '$[0]')
    AND t.position = json_extract(wanted.value, '$[1]')
WHERE t.format <= ?2
ORDER BY t.run_id, t.position;

-- name: lock_task_states
-- Index: primary key, read in order of position until `limit` rows match.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM task AS t
WHERE t.run_id = ?2
    AND t.state IN (SELECT json_extract(value, '$[0]') FROM json_each(?1))
    AND t.format <= ?4
ORDER BY t.position
LIMIT ?3;

-- name: lock_ready_tasks
-- Index: primary key, read in order of position until `limit` rows match.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM task AS t
WHERE t.run_id = ?1 AND t.position >= ?3 AND t.state = 'READY'
    AND (t.hold IS 'paused') = ?2 AND t.format <= ?5
ORDER BY t.position
LIMIT ?4;

-- name: lock_untold_tasks
-- Index: task_untold.
SELECT t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format
FROM task AS t INDEXED BY task_untold
WHERE t.run_id = ?1 AND t.told IS NOT NULL AND t.format <= ?3
ORDER BY t.position
LIMIT ?2;

-- name: claim_ready
-- Index: task_ready, then the run by its primary key. A small input comes along.
SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
    r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
    r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
    r.kind, r.key, r.swept, CASE WHEN length(r.input) <= ?7 THEN r.input END,
    t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format, t.ready_no
FROM task AS t INDEXED BY task_ready
CROSS JOIN run AS r
WHERE t.state = 'READY' AND t.hold IS NULL
    AND t.namespace = ?1 AND t.route = ?2 AND t.priority = ?3 AND t.ready_no >= ?4
    AND t.format <= ?6
    AND r.id = t.run_id AND r.quarantine IS NULL AND r.format <= ?6
ORDER BY t.ready_no
LIMIT ?5;

-- name: claim_ready_alone
-- Index: task_ready_alone, then the run by its primary key. A small input comes along.
SELECT r.id, r.namespace, r.workflow, r.version_id, r.state, r.open, r.failed, r.ended,
    r.next_position, r.told, r.stop, r.generation, r.quarantine, r.labels, r.parent_run,
    r.parent_position, r.created_at, r.due_at, r.started_at, r.ended_at, r.reason, r.format,
    r.kind, r.key, r.swept, CASE WHEN length(r.input) <= ?7 THEN r.input END,
    t.run_id, t.position, t.namespace, t.node, t.kind, t.state, t.epoch, t.failures, t.losses,
    t.waiting, t.failed, t.skipped, t.told, t.route, t.priority, t.hold, t.due_at, t.session_id,
    t.ready_at, t.started_at, t.ended_at, t.ended_no, t.reason, t.error, t.format, t.ready_no
FROM task AS t INDEXED BY task_ready_alone
CROSS JOIN run AS r
WHERE t.state = 'READY' AND t.hold = 'alone'
    AND t.namespace = ?1 AND t.route = ?2 AND t.priority = ?3 AND t.ready_no >= ?4
    AND t.format <= ?6
    AND r.id = t.run_id AND r.quarantine IS NULL AND r.format <= ?6
ORDER BY t.ready_no
LIMIT ?5;

-- name: save_task
-- Index: primary key. Takes many rows. What comes back from a worker keeps its place in its lane.
WITH new (
    run_id, position, state, epoch, failures, losses, waiting, failed, skipped, told, route,
    priority, hold, due_at, session_id, ready_at, started_at, ended_at, ended_no, reason, error,
    format
) AS (VALUES
    (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE task SET
    state = new.state, epoch = new.epoch, failures = new.failures, losses = new.losses,
    waiting = new.waiting, failed = new.failed, skipped = new.skipped, told = new.told,
    route = new.route, priority = new.priority, hold = new.hold, due_at = new.due_at,
    session_id = new.session_id, ready_at = new.ready_at, started_at = new.started_at,
    ended_at = new.ended_at, ended_no = new.ended_no, reason = new.reason, error = new.error,
    format = new.format,
    ready_no = CASE
        WHEN new.state <> 'READY' THEN ready_no
        WHEN task.state = 'RUNNING' THEN coalesce(ready_no, next_ready_no())
        WHEN task.state = 'READY' AND task.hold IS new.hold THEN ready_no
        ELSE next_ready_no()
    END
FROM new
WHERE task.run_id = new.run_id AND task.position = new.position;
