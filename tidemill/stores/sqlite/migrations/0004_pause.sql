-- A run may be PAUSED. SQLite cannot change a CHECK: the table is made anew and takes the rows over.

CREATE TABLE run_anew (
    id              TEXT NOT NULL PRIMARY KEY,
    namespace       TEXT NOT NULL,
    workflow        TEXT NOT NULL,
    version_id      TEXT NOT NULL,
    state           TEXT NOT NULL
        CHECK (state = 'RUNNING' OR state = 'SUCCEEDED' OR state = 'FAILED'
            OR state = 'PENDING' OR state = 'CANCELLED' OR state = 'PAUSED'),
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
    swept           INTEGER,
    CONSTRAINT run_ended_at_exactly_when_ended
        CHECK ((ended_at IS NOT NULL)
            = (state = 'SUCCEEDED' OR state = 'FAILED' OR state = 'CANCELLED')),
    CONSTRAINT run_ended_with_nothing_open CHECK (ended_at IS NULL OR open = 0)
) STRICT;

INSERT INTO run_anew (
    id, namespace, workflow, version_id, state, open, failed, ended, next_position, told, stop,
    generation, quarantine, labels, parent_run, parent_position, created_at, due_at, started_at,
    ended_at, reason, format, input
)
SELECT
    id, namespace, workflow, version_id, state, open, failed, ended, next_position, told, stop,
    generation, quarantine, labels, parent_run, parent_position, created_at, due_at, started_at,
    ended_at, reason, format, input
FROM run ORDER BY rowid;

DROP TABLE run;
ALTER TABLE run_anew RENAME TO run;

CREATE INDEX run_listing ON run (namespace, id);
CREATE INDEX run_due ON run (due_at)
    WHERE due_at IS NOT NULL AND ended_at IS NULL AND stop IS NULL;
CREATE INDEX run_unsettled ON run (id)
    WHERE state = 'PENDING' OR told IS NOT NULL OR (stop IS NOT NULL AND ended_at IS NULL);
CREATE INDEX run_foreign ON run (id) WHERE format > 1;

-- Runs that were paused or resumed, with READY tasks left to hold or to admit.
CREATE INDEX run_unswept ON run (id) WHERE swept IS NOT NULL;

-- An ended run begins again only as a new generation, which may end in the same write.
CREATE TRIGGER run_moves BEFORE UPDATE OF state, generation ON run
WHEN NEW.generation < OLD.generation
    OR (OLD.ended_at IS NOT NULL AND NEW.state <> OLD.state
        AND NEW.generation = OLD.generation)
BEGIN
    SELECT RAISE(ABORT, 'illegal transition of a run');
END;
