-- Workflows by name, what people list runs by, and dead letters that were discarded.
ALTER TABLE run ADD COLUMN kind TEXT NOT NULL DEFAULT 'run';
ALTER TABLE run ADD COLUMN key TEXT;

-- A dead letter is a task that failed, and was not discarded since.
ALTER TABLE task ADD COLUMN discarded_at INTEGER;

CREATE TABLE workflow (
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    id         TEXT NOT NULL,
    title      TEXT NOT NULL,
    labels     TEXT NOT NULL,
    number     INTEGER NOT NULL CHECK (number >= 0),
    version_id TEXT,
    draft      BLOB,
    run_id     TEXT,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    deleted_at INTEGER,
    PRIMARY KEY (namespace, name),
    CONSTRAINT workflow_released_exactly_when_numbered
        CHECK ((version_id IS NOT NULL) = (number > 0))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX workflow_id ON workflow (id);

CREATE TABLE workflow_release (
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    number     INTEGER NOT NULL CHECK (number >= 1),
    version_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (namespace, name, number)
) STRICT, WITHOUT ROWID;

-- Only runs with labels have rows here.
CREATE TABLE run_label (
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    value     TEXT NOT NULL,
    run_id    TEXT NOT NULL,
    PRIMARY KEY (namespace, name, value, run_id)
) STRICT, WITHOUT ROWID;

INSERT INTO run_label (namespace, name, value, run_id)
SELECT run.namespace, l.key, l.value, run.id
FROM run, json_each(run.labels) AS l
WHERE run.labels <> '{}';

CREATE INDEX run_open ON run (namespace, id) WHERE ended_at IS NULL;
CREATE INDEX run_unsuccessful ON run (namespace, state, id)
    WHERE state = 'FAILED' OR state = 'CANCELLED';
CREATE INDEX run_by_kind ON run (namespace, kind, id);
-- Jobs are many and have few names: those of a name are found among the newest jobs.
CREATE INDEX run_by_workflow ON run (namespace, workflow, id) WHERE kind <> 'job';
CREATE INDEX task_backoff ON task (namespace, run_id) WHERE state = 'BACKOFF';
CREATE INDEX task_held ON task (namespace, route) WHERE state = 'READY' AND hold IS NOT NULL;
CREATE INDEX task_dead_letter ON task (namespace, run_id DESC, position)
    WHERE state = 'FAILED' AND (discarded_at IS NULL OR discarded_at < ended_at);
CREATE INDEX start_key_expiry ON start_key (expires_at);
