-- What a worker offers to run: executors and single functions, as a JSON array; none: anything.
ALTER TABLE session ADD COLUMN offers TEXT NOT NULL DEFAULT '[]';

-- Secrets, sealed under a key that is not in the database.
CREATE TABLE secret (
    namespace  TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    sealed     BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, name)
);
