-- The engine's tables. Moments are microseconds since 1970, by the clock of the server. Texts that
-- take part in orders compare by their bytes, as the engine does. The greatest UUID stands for what
-- is none.

-- Not the time of the transaction: leases are compared with the clock as it is now.
CREATE FUNCTION now_micros() RETURNS BIGINT LANGUAGE sql VOLATILE
RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT;

CREATE FUNCTION refuse_move() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'TM001';
END
$$;

CREATE SEQUENCE task_ready_no CACHE 1;

CREATE TABLE workflow_version (
    id         TEXT COLLATE "C" NOT NULL,
    namespace  TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    spec       BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id, namespace)
);

CREATE TABLE run (
    id              UUID NOT NULL PRIMARY KEY CHECK (id <> 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    namespace       TEXT COLLATE "C" NOT NULL,
    workflow        TEXT NOT NULL,
    version_id      TEXT NOT NULL,
    state           TEXT NOT NULL
        CHECK (state IN ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
    open            INTEGER NOT NULL CHECK (open >= 0),
    failed          INTEGER NOT NULL CHECK (failed >= 0),
    ended           INTEGER NOT NULL CHECK (ended >= 0),
    next_position   INTEGER NOT NULL CHECK (next_position >= 0),
    told            INTEGER CHECK (told >= 0),
    stop            TEXT,
    generation      INTEGER NOT NULL CHECK (generation >= 1),
    quarantine      TEXT,
    labels          TEXT NOT NULL,
    parent_run      UUID CHECK (parent_run <> 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    parent_position INTEGER,
    created_at      BIGINT NOT NULL,
    due_at          BIGINT,
    started_at      BIGINT,
    ended_at        BIGINT,
    reason          TEXT,
    format          INTEGER NOT NULL CHECK (format >= 1),
    input           BYTEA NOT NULL,
    CONSTRAINT run_ended_at_exactly_when_ended
        CHECK ((ended_at IS NOT NULL) = (state IN ('SUCCEEDED', 'FAILED', 'CANCELLED'))),
    CONSTRAINT run_ended_with_nothing_open CHECK (ended_at IS NULL OR open = 0)
);

CREATE INDEX run_listing ON run (namespace, id);
CREATE INDEX run_due ON run (due_at)
    WHERE due_at IS NOT NULL AND ended_at IS NULL AND stop IS NULL;
CREATE INDEX run_unsettled ON run (id)
    WHERE state = 'PENDING' OR told IS NOT NULL OR (stop IS NOT NULL AND ended_at IS NULL);

CREATE TABLE task (
    run_id     UUID NOT NULL CHECK (run_id <> 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    position   INTEGER NOT NULL CHECK (position >= 0),
    namespace  TEXT COLLATE "C" NOT NULL,
    node       INTEGER NOT NULL CHECK (node >= 0),
    kind       TEXT COLLATE "C" NOT NULL,
    state      TEXT NOT NULL CHECK (state IN (
        'PENDING', 'READY', 'RUNNING', 'BACKOFF', 'CANCELLING',
        'SUCCEEDED', 'FAILED', 'SKIPPED', 'UPSTREAM_FAILED', 'CANCELLED')),
    epoch      INTEGER NOT NULL CHECK (epoch >= 0),
    failures   INTEGER NOT NULL CHECK (failures >= 0),
    losses     INTEGER NOT NULL CHECK (losses >= 0),
    waiting    INTEGER NOT NULL CHECK (waiting >= 0),
    failed     INTEGER NOT NULL CHECK (failed >= 0),
    skipped    INTEGER NOT NULL CHECK (skipped >= 0),
    told       INTEGER CHECK (told >= 0),
    route      TEXT COLLATE "C" NOT NULL,
    priority   INTEGER NOT NULL,
    hold       TEXT,
    due_at     BIGINT,
    session_id TEXT COLLATE "C",
    ready_at   BIGINT,
    started_at BIGINT,
    ended_at   BIGINT,
    ended_no   INTEGER,
    reason     TEXT,
    error      TEXT,
    format     INTEGER NOT NULL CHECK (format >= 1),
    ready_no   BIGINT,
    parent     INTEGER,
    item       INTEGER,
    PRIMARY KEY (run_id, position),
    CONSTRAINT task_session_exactly_while_granted
        CHECK ((session_id IS NOT NULL) = (state IN ('RUNNING', 'CANCELLING'))),
    CONSTRAINT task_ended_at_exactly_when_ended CHECK ((ended_at IS NOT NULL) = (state IN (
        'SUCCEEDED', 'FAILED', 'SKIPPED', 'UPSTREAM_FAILED', 'CANCELLED'))),
    CONSTRAINT task_hold_only_when_ready CHECK (hold IS NULL OR state = 'READY'),
    CONSTRAINT task_told_only_when_ended CHECK (told IS NULL OR ended_at IS NOT NULL),
    CONSTRAINT task_ready_has_a_place CHECK (state <> 'READY' OR ready_no IS NOT NULL)
);

CREATE INDEX task_ready ON task (namespace, route, priority, ready_no)
    WHERE state = 'READY' AND hold IS NULL;
CREATE INDEX task_ready_alone ON task (namespace, route, priority, ready_no)
    WHERE state = 'READY' AND hold = 'alone';
CREATE INDEX task_due ON task (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX task_granted ON task (session_id) WHERE state IN ('RUNNING', 'CANCELLING');
CREATE INDEX task_untold ON task (run_id) WHERE told IS NOT NULL;
CREATE INDEX task_dead ON task (namespace, run_id DESC, position) WHERE state = 'FAILED';

-- The last wall: an ending is left only by a replay, and the fence only rises. What waits again
-- after a replay may be known to be skipped in the same write.
CREATE TRIGGER task_moves BEFORE UPDATE OF state, epoch ON task
FOR EACH ROW WHEN (
    NEW.epoch < OLD.epoch
    OR (OLD.ended_at IS NOT NULL AND NEW.state <> OLD.state AND NOT (
        (OLD.state = 'FAILED' AND NEW.state IN ('READY', 'RUNNING'))
        OR (OLD.state IN ('SKIPPED', 'UPSTREAM_FAILED', 'CANCELLED')
            AND NEW.state IN ('PENDING', 'READY', 'RUNNING', 'SKIPPED', 'UPSTREAM_FAILED')))))
EXECUTE FUNCTION refuse_move('illegal transition of a task');

-- An ended run begins again only as a new generation.
CREATE TRIGGER run_moves BEFORE UPDATE OF state, generation ON run
FOR EACH ROW WHEN (
    NEW.generation < OLD.generation
    OR (OLD.ended_at IS NOT NULL AND NEW.state <> OLD.state
        AND NOT (NEW.state = 'RUNNING' AND NEW.generation > OLD.generation)))
EXECUTE FUNCTION refuse_move('illegal transition of a run');

CREATE TABLE attempt (
    run_id     UUID NOT NULL,
    position   INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    namespace  TEXT COLLATE "C" NOT NULL,
    attempt    INTEGER NOT NULL CHECK (attempt >= 1),
    reason     TEXT NOT NULL,
    session_id TEXT COLLATE "C",
    started_at BIGINT,
    ended_at   BIGINT NOT NULL,
    error      TEXT,
    PRIMARY KEY (run_id, position, epoch)
);

CREATE TABLE task_result (
    run_id    UUID NOT NULL,
    position  INTEGER NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    data      BYTEA NOT NULL,
    PRIMARY KEY (run_id, position)
);

CREATE TABLE attempt_log (
    run_id    UUID NOT NULL,
    position  INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    data      BYTEA NOT NULL,
    PRIMARY KEY (run_id, position, epoch)
);

CREATE TABLE session (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    namespace   TEXT COLLATE "C" NOT NULL,
    worker      TEXT NOT NULL,
    scheduler   TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    slots       INTEGER NOT NULL CHECK (slots >= 0),
    queues      TEXT NOT NULL,
    labels      TEXT NOT NULL,
    opened_at   BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    closed_at   BIGINT,
    successor   TEXT CHECK (successor IS NULL OR closed_at IS NOT NULL)
);

CREATE TABLE start_key (
    namespace  TEXT COLLATE "C" NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    body_hash  TEXT NOT NULL,
    run_id     UUID NOT NULL CHECK (run_id <> 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, kind, key)
);

CREATE TABLE outbox (
    number     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position   BIGINT,
    facts      BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX outbox_position ON outbox (position) WHERE position IS NOT NULL;
CREATE INDEX outbox_unstamped ON outbox (number) WHERE position IS NULL;

CREATE TABLE outbox_cursor (
    name     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL CHECK (position >= 0)
);

-- How far rows are stamped: no reader, and outlives the rows.
INSERT INTO outbox_cursor (name, position) VALUES ('$stamped', 0);

CREATE TABLE leader (
    name     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    holder   TEXT COLLATE "C" NOT NULL,
    until_at BIGINT NOT NULL
);

-- Rows of these tables change many times in a short life: leave room for it on their pages, and
-- clean up after a fixed number of changes rather than after a share of a large table.
ALTER TABLE task SET (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE run SET (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE session SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500
);
ALTER TABLE outbox SET (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000
);
ALTER TABLE leader SET (fillfactor = 50);
ALTER TABLE outbox_cursor SET (fillfactor = 50);
