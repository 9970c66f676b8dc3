-- What a worker offers to run: executors and single functions, as a JSON array; none: anything.
ALTER TABLE session ADD COLUMN offers TEXT NOT NULL DEFAULT '[]';

-- Secrets, sealed under a key that is not in the database.
CREATE TABLE secret (
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;
