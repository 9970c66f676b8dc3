-- The engine's tables. Moments are microseconds since 1970, by the clock of the store's owner.
-- CHECKs avoid IN with many values: SQLite would build a table of them for every row it writes.

CREATE TABLE workflow_version (
    id         TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    spec       BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (id, namespace)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    id              TEXT NOT NULL PRIMARY KEY,
    namespace       TEXT NOT NULL,
    workflow        TEXT NOT NULL,
    version_id      TEXT NOT NULL,
    state           TEXT NOT NULL
        CHECK (state = 'RUNNING' OR state = 'SUCCEEDED' OR state = 'FAILED'
            OR state = 'PENDING' OR state = 'CANCELLED'),
    open            INTEGER NOT NULL CHECK (open >= 0),
    failed          INTEGER NOT NULL CHECK (failed >= 0),
    ended           INTEGER NOT NULL CHECK (ended >= 0),
    next_position   INTEGER NOT NULL CHECK (next_position >= 0),
    told            INTEGER CHECK (told >= 0),
    stop            TEXT,
    generation      INTEGER NOT NULL CHECK (generation >= 1),
    quarantine      TEXT,
    labels          TEXT NOT NULL,
    parent_run      TEXT,
    parent_position INTEGER,
    created_at      INTEGER NOT NULL,
    due_at          INTEGER,
    started_at      INTEGER,
    ended_at        INTEGER,
    reason          TEXT,
    format          INTEGER NOT NULL CHECK (format >= 1),
    input           BLOB NOT NULL,
    CONSTRAINT run_ended_at_exactly_when_ended
        CHECK ((ended_at IS NOT NULL)
            = (state = 'SUCCEEDED' OR state = 'FAILED' OR state = 'CANCELLED')),
    CONSTRAINT run_ended_with_nothing_open CHECK (ended_at IS NULL OR open = 0)
) STRICT;

CREATE INDEX run_listing ON run (namespace, id);
CREATE INDEX run_due ON run (due_at)
    WHERE due_at IS NOT NULL AND ended_at IS NULL AND stop IS NULL;
CREATE INDEX run_unsettled ON run (id)
    WHERE state = 'PENDING' OR told IS NOT NULL OR (stop IS NOT NULL AND ended_at IS NULL);

CREATE TABLE task (
    run_id     TEXT NOT NULL,
    position   INTEGER NOT NULL CHECK (position >= 0),
    namespace  TEXT NOT NULL,
    node       INTEGER NOT NULL CHECK (node >= 0),
    kind       TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (
        state = 'RUNNING' OR state = 'READY' OR state = 'PENDING' OR state = 'SUCCEEDED'
        OR state = 'FAILED' OR state = 'BACKOFF' OR state = 'CANCELLING' OR state = 'SKIPPED'
        OR state = 'UPSTREAM_FAILED' OR state = 'CANCELLED'),
    epoch      INTEGER NOT NULL CHECK (epoch >= 0),
    failures   INTEGER NOT NULL CHECK (failures >= 0),
    losses     INTEGER NOT NULL CHECK (losses >= 0),
    waiting    INTEGER NOT NULL CHECK (waiting >= 0),
    failed     INTEGER NOT NULL CHECK (failed >= 0),
    skipped    INTEGER NOT NULL CHECK (skipped >= 0),
    told       INTEGER CHECK (told >= 0),
    route      TEXT NOT NULL,
    priority   INTEGER NOT NULL,
    hold       TEXT,
    due_at     INTEGER,
    session_id TEXT,
    ready_at   INTEGER,
    started_at INTEGER,
    ended_at   INTEGER,
    ended_no   INTEGER,
    reason     TEXT,
    error      TEXT,
    format     INTEGER NOT NULL CHECK (format >= 1),
    ready_no   INTEGER,
    parent     INTEGER,
    item       INTEGER,
    PRIMARY KEY (run_id, position),
    CONSTRAINT task_session_exactly_while_granted
        CHECK ((session_id IS NOT NULL) = (state IN ('RUNNING', 'CANCELLING'))),
    CONSTRAINT task_ended_at_exactly_when_ended CHECK ((ended_at IS NOT NULL) = (
        state = 'SUCCEEDED' OR state = 'FAILED' OR state = 'SKIPPED'
        OR state = 'UPSTREAM_FAILED' OR state = 'CANCELLED')),
    CONSTRAINT task_hold_only_when_ready CHECK (hold IS NULL OR state = 'READY'),
    CONSTRAINT task_told_only_when_ended CHECK (told IS NULL OR ended_at IS NOT NULL),
    CONSTRAINT task_ready_has_a_place CHECK (state <> 'READY' OR ready_no IS NOT NULL)
) STRICT;

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
WHEN NEW.epoch < OLD.epoch
    OR (OLD.ended_at IS NOT NULL AND NEW.state <> OLD.state AND NOT (
        (OLD.state = 'FAILED' AND NEW.state IN ('READY', 'RUNNING'))
        OR (OLD.state IN ('SKIPPED', 'UPSTREAM_FAILED', 'CANCELLED')
            AND NEW.state IN ('PENDING', 'READY', 'RUNNING', 'SKIPPED', 'UPSTREAM_FAILED'))))
BEGIN
    SELECT RAISE(ABORT, 'illegal transition of a task');
END;

-- An ended run begins again only as a new generation.
CREATE TRIGGER run_moves BEFORE UPDATE OF state, generation ON run
WHEN NEW.generation < OLD.generation
    OR (OLD.ended_at IS NOT NULL AND NEW.state <> OLD.state
        AND NOT (NEW.state = 'RUNNING' AND NEW.generation > OLD.generation))
BEGIN
    SELECT RAISE(ABORT, 'illegal transition of a run');
END;

CREATE TABLE attempt (
    run_id     TEXT NOT NULL,
    position   INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    namespace  TEXT NOT NULL,
    attempt    INTEGER NOT NULL CHECK (attempt >= 1),
    reason     TEXT NOT NULL,
    session_id TEXT,
    started_at INTEGER,
    ended_at   INTEGER NOT NULL,
    error      TEXT,
    PRIMARY KEY (run_id, position, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE task_result (
    run_id    TEXT NOT NULL,
    position  INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    data      BLOB NOT NULL,
    PRIMARY KEY (run_id, position)
) STRICT;

CREATE TABLE attempt_log (
    run_id    TEXT NOT NULL,
    position  INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    data      BLOB NOT NULL,
    PRIMARY KEY (run_id, position, epoch)
) STRICT;

CREATE TABLE session (
    id          TEXT NOT NULL PRIMARY KEY,
    namespace   TEXT NOT NULL,
    worker      TEXT NOT NULL,
    scheduler   TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    slots       INTEGER NOT NULL CHECK (slots >= 0),
    queues      TEXT NOT NULL,
    labels      TEXT NOT NULL,
    opened_at   INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    closed_at   INTEGER,
    successor   TEXT CHECK (successor IS NULL OR closed_at IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE TABLE start_key (
    namespace  TEXT NOT NULL,
    kind       TEXT NOT NULL,
    key        TEXT NOT NULL,
    body_hash  TEXT NOT NULL,
    run_id     TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    position   INTEGER,
    facts      BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX outbox_position ON outbox (position) WHERE position IS NOT NULL;
CREATE INDEX outbox_unstamped ON outbox (number) WHERE position IS NULL;

CREATE TABLE outbox_cursor (
    name     TEXT NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL CHECK (position >= 0)
) STRICT, WITHOUT ROWID;

-- How far rows are stamped: no reader, and outlives the rows.
INSERT INTO outbox_cursor (name, position) VALUES ('$stamped', 0);

CREATE TABLE leader (
    name     TEXT NOT NULL PRIMARY KEY,
    holder   TEXT NOT NULL,
    until_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
