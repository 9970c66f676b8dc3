-- tidemill: outside transaction
-- Workflows by name, what people list runs by, and dead letters that were discarded.
ALTER TABLE run
    ADD COLUMN IF NOT EXISTS kind TEXT COLLATE "C" NOT NULL DEFAULT 'run',
    ADD COLUMN IF NOT EXISTS key TEXT;

-- A dead letter is a task that failed, and was not discarded since.
ALTER TABLE task ADD COLUMN IF NOT EXISTS discarded_at BIGINT;

CREATE TABLE IF NOT EXISTS workflow (
    namespace  TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    id         UUID NOT NULL CHECK (id <> 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    title      TEXT NOT NULL,
    labels     TEXT NOT NULL,
    number     INTEGER NOT NULL CHECK (number >= 0),
    version_id TEXT COLLATE "C",
    draft      BYTEA,
    run_id     UUID,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    deleted_at BIGINT,
    PRIMARY KEY (namespace, name),
    CONSTRAINT workflow_released_exactly_when_numbered
        CHECK ((version_id IS NOT NULL) = (number > 0))
);

CREATE UNIQUE INDEX IF NOT EXISTS workflow_id ON workflow (id);

CREATE TABLE IF NOT EXISTS workflow_release (
    namespace  TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    number     INTEGER NOT NULL CHECK (number >= 1),
    version_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (namespace, name, number)
);

-- Only runs with labels have rows here.
CREATE TABLE IF NOT EXISTS run_label (
    namespace TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    value     TEXT COLLATE "C" NOT NULL,
    run_id    UUID NOT NULL,
    PRIMARY KEY (namespace, name, value, run_id)
);

INSERT INTO run_label (namespace, name, value, run_id)
SELECT r.namespace, l.key, l.value, r.id
FROM run AS r CROSS JOIN LATERAL jsonb_each_text(r.labels::JSONB) AS l
WHERE r.labels <> '{}'
ON CONFLICT DO NOTHING;

DROP INDEX CONCURRENTLY IF EXISTS run_open;
CREATE INDEX CONCURRENTLY run_open ON run (namespace, id) WHERE ended_at IS NULL;

DROP INDEX CONCURRENTLY IF EXISTS run_unsuccessful;
CREATE INDEX CONCURRENTLY run_unsuccessful ON run (namespace, state, id)
    WHERE state IN ('FAILED', 'CANCELLED');

DROP INDEX CONCURRENTLY IF EXISTS run_by_kind;
CREATE INDEX CONCURRENTLY run_by_kind ON run (namespace, kind, id);

-- Jobs are many and have few names: those of a name are found among the newest jobs.
DROP INDEX CONCURRENTLY IF EXISTS run_by_workflow;
CREATE INDEX CONCURRENTLY run_by_workflow ON run (namespace, workflow, id) WHERE kind <> 'job';

DROP INDEX CONCURRENTLY IF EXISTS task_backoff;
CREATE INDEX CONCURRENTLY task_backoff ON task (namespace, run_id) WHERE state = 'BACKOFF';

DROP INDEX CONCURRENTLY IF EXISTS task_held;
CREATE INDEX CONCURRENTLY task_held ON task (namespace, route)
    WHERE state = 'READY' AND hold IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS task_dead_letter;
CREATE INDEX CONCURRENTLY task_dead_letter ON task (namespace, run_id DESC, position)
    WHERE state = 'FAILED' AND (discarded_at IS NULL OR discarded_at < ended_at);

DROP INDEX CONCURRENTLY IF EXISTS start_key_expiry;
CREATE INDEX CONCURRENTLY start_key_expiry ON start_key (expires_at);
