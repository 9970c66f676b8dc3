-- name: add_login
INSERT INTO login (id, account_id, address, created_at, expires_at, revoked_at)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: prune_refresh_tokens
-- Index: login_account, refresh_token_login.
DELETE FROM refresh_token
WHERE login_id IN (SELECT id FROM login WHERE account_id = $1 AND expires_at < $2);

-- name: prune_logins
-- Index: login_account.
DELETE FROM login WHERE account_id = $1 AND expires_at < $2;

-- name: add_refresh_token
INSERT INTO refresh_token (hash, login_id, created_at, used_at) VALUES ($1, $2, $3, $4);

-- name: get_refresh_token
SELECT f.id, f.account_id, f.address, f.created_at, f.expires_at, f.revoked_at,
    t.hash, t.created_at, t.used_at
FROM refresh_token AS t
JOIN login AS f ON f.id = t.login_id
WHERE t.hash = $1;

-- name: use_refresh_token
UPDATE refresh_token SET used_at = $2 WHERE hash = $1 AND used_at IS NULL;

-- name: revoke_login
UPDATE login SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL;

-- name: revoke_logins_of
-- Index: login_account.
UPDATE login SET revoked_at = $2 WHERE account_id = $1 AND revoked_at IS NULL AND id <> $3;

-- name: find_family_holders
-- Index: primary keys.
SELECT f.id, f.account_id, f.address, f.created_at, f.expires_at, f.revoked_at,
    a.id, a.kind, a.name, a.email, a.namespace, a.created_at, a.created_by, a.disabled_at,
    m.namespace, m.role
FROM unnest($1::TEXT[]) AS wanted (id)
JOIN login AS f ON f.id = wanted.id
JOIN account AS a ON a.id = f.account_id
LEFT JOIN membership AS m ON m.account_id = f.account_id;

-- name: begin_attempts
-- So that there is a row, and that it is locked: the first two tries may come at the same time, and an
-- old row may be forgotten just now.
INSERT INTO login_attempt (subject, window_at, tries, failures, locked_until)
VALUES ($1, 0, 0, 0, 0)
ON CONFLICT (subject) DO UPDATE SET tries = login_attempt.tries;

-- name: lock_attempts
SELECT subject, window_at, tries, failures, locked_until
FROM login_attempt
WHERE subject = $1
FOR UPDATE;

-- name: save_attempts
INSERT INTO login_attempt (subject, window_at, tries, failures, locked_until)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (subject) DO UPDATE
SET window_at = excluded.window_at, tries = excluded.tries, failures = excluded.failures,
    locked_until = excluded.locked_until;

-- name: forget_attempts
-- Looks at all rows: those of the last minutes. Those that somebody counts on just now stay.
DELETE FROM login_attempt
WHERE subject IN (
    SELECT old.subject FROM login_attempt AS old
    WHERE old.window_at < $1 AND old.locked_until < $1
    FOR UPDATE SKIP LOCKED
);
