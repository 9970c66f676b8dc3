-- Who there is, what they may do where, and what they did. Secrets are kept as hashes only. These
-- tables are small.

CREATE TABLE namespace (
    name             TEXT NOT NULL PRIMARY KEY CHECK (name <> '*'),
    default_executor TEXT,
    settings         TEXT NOT NULL,
    created_at       INTEGER NOT NULL,
    created_by       TEXT NOT NULL
) STRICT;

INSERT INTO namespace (name, settings, created_at, created_by)
VALUES ('default', '{}', CAST(strftime('%s', 'now') AS INTEGER) * 1000000, 'tidemill');

CREATE TABLE account (
    id            TEXT NOT NULL PRIMARY KEY,
    kind          TEXT NOT NULL CHECK (kind IN ('user', 'service')),
    name          TEXT NOT NULL,
    email         TEXT,
    namespace     TEXT,
    created_at    INTEGER NOT NULL,
    created_by    TEXT NOT NULL,
    disabled_at   INTEGER,
    password_hash TEXT,
    CONSTRAINT account_user_has_email CHECK ((kind = 'user') = (email IS NOT NULL)),
    CONSTRAINT account_service_has_namespace CHECK ((kind = 'service') = (namespace IS NOT NULL)),
    CONSTRAINT account_password_is_hashed CHECK (password_hash GLOB '$argon2id$*')
) STRICT;

CREATE UNIQUE INDEX account_email ON account (email) WHERE email IS NOT NULL;
CREATE INDEX account_namespace ON account (namespace, id) WHERE namespace IS NOT NULL;

CREATE TABLE membership (
    account_id TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (account_id, namespace)
) STRICT;

CREATE INDEX membership_namespace ON membership (namespace, account_id);

CREATE TABLE api_key (
    id           TEXT NOT NULL PRIMARY KEY,
    kind         TEXT NOT NULL CHECK (kind IN ('api', 'worker')),
    namespace    TEXT NOT NULL,
    name         TEXT NOT NULL,
    secret_hash  TEXT NOT NULL CHECK (length(secret_hash) = 64),
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    account_id   TEXT,
    scopes       TEXT,
    queues       TEXT NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    CONSTRAINT api_key_has_account_unless_worker CHECK ((kind = 'worker') = (account_id IS NULL))
) STRICT;

CREATE INDEX api_key_namespace ON api_key (namespace, id);
CREATE INDEX api_key_account ON api_key (account_id) WHERE account_id IS NOT NULL;

-- One login. The id is the hash of what access tokens carry: nobody can make one from a copy of
-- these tables, not even with the signing key.
CREATE TABLE login (
    id         TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 64),
    account_id TEXT NOT NULL,
    address    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE INDEX login_account ON login (account_id);

CREATE TABLE refresh_token (
    hash       TEXT NOT NULL PRIMARY KEY CHECK (length(hash) = 64),
    login_id   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT;

CREATE INDEX refresh_token_login ON refresh_token (login_id);

CREATE TABLE invitation (
    id          TEXT NOT NULL PRIMARY KEY,
    secret_hash TEXT NOT NULL CHECK (length(secret_hash) = 64),
    namespace   TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
    created_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    expires_at  INTEGER NOT NULL,
    email       TEXT,
    used_at     INTEGER,
    used_by     TEXT
) STRICT;

CREATE INDEX invitation_namespace ON invitation (namespace, id);

CREATE TABLE login_attempt (
    subject      TEXT NOT NULL PRIMARY KEY,
    window_at    INTEGER NOT NULL,
    tries        INTEGER NOT NULL CHECK (tries >= 0),
    failures     INTEGER NOT NULL CHECK (failures >= 0),
    locked_until INTEGER NOT NULL
) STRICT;

-- The signing key and what is left of the first start.
CREATE TABLE identity_value (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE audit (
    number     INTEGER NOT NULL PRIMARY KEY CHECK (number >= 1),
    at         INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    action     TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    target     TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    address    TEXT NOT NULL,
    request_id TEXT NOT NULL,
    detail     TEXT NOT NULL,
    previous   TEXT NOT NULL CHECK (length(previous) = 64),
    hash       TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;

CREATE INDEX audit_namespace ON audit (namespace, number);

-- The log only grows.
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log only grows');
END;

CREATE TRIGGER audit_stays_whole BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log only grows');
END;

-- Its end. Whoever changes identity locks this row first.
CREATE TABLE audit_head (
    id     INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL,
    hash   TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;

INSERT INTO audit_head (id, number, hash) VALUES (1, 0, hex(zeroblob(32)));
