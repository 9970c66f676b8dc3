-- name: add_account
INSERT INTO account
    (id, kind, name, email, namespace, created_at, created_by, disabled_at, password_hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO NOTHING;

-- name: find_login
-- Index: account_email.
SELECT a.id, a.kind, a.name, a.email, a.namespace, a.created_at, a.created_by, a.disabled_at, a.password_hash
FROM account AS a
WHERE a.email = ?1;

-- name: get_account
SELECT a.id, a.kind, a.name, a.email, a.namespace, a.created_at, a.created_by, a.disabled_at, a.password_hash
FROM account AS a
WHERE a.id = ?1;

-- name: set_password
UPDATE account SET password_hash = ?2 WHERE id = ?1;

-- name: set_disabled
UPDATE account SET disabled_at = ?2 WHERE id = ?1;

-- name: set_role
INSERT INTO membership (account_id, namespace, role, created_at, created_by)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (account_id, namespace) DO UPDATE
SET role = excluded.role, created_at = excluded.created_at, created_by = excluded.created_by;

-- name: drop_role
DELETE FROM membership WHERE account_id = ?1 AND namespace = ?2;

-- name: count_admins
-- Index: membership_namespace.
SELECT count(*)
FROM membership AS m
JOIN account AS a ON a.id = m.account_id
WHERE m.namespace = '*' AND m.role = 'admin' AND a.disabled_at IS NULL AND a.kind = 'user';

-- name: list_accounts
-- Index: primary keys. There is a row for each role of an account.
SELECT a.id, a.kind, a.name, a.email, a.namespace, a.created_at, a.created_by, a.disabled_at,
    m.namespace, m.role
FROM (SELECT id FROM account WHERE kind = ?1 AND id > ?2 ORDER BY id LIMIT ?3) AS page
JOIN account AS a ON a.id = page.id
LEFT JOIN membership AS m ON m.account_id = a.id;

-- name: list_service_accounts
-- Index: account_namespace.
SELECT a.id, a.kind, a.name, a.email, a.namespace, a.created_at, a.created_by, a.disabled_at
FROM account AS a
WHERE a.namespace = ?1 AND a.id > ?2
ORDER BY a.id
LIMIT ?3;

-- name: list_roles
SELECT namespace, role FROM membership WHERE account_id = ?1 ORDER BY namespace;

-- name: list_members
-- Index: membership_namespace.
SELECT a.id, a.kind, a.name, a.email, a.namespace, a.created_at, a.created_by, a.disabled_at, m.role, m.created_at
FROM membership AS m
JOIN account AS a ON a.id = m.account_id
WHERE m.namespace = ?1 AND m.account_id > ?2
ORDER BY m.account_id
LIMIT ?3;
