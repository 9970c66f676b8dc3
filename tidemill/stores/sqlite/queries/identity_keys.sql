-- name: add_api_key
INSERT INTO api_key (id, kind, namespace, name, secret_hash, created_at, created_by, account_id,
    scopes, queues, expires_at, last_used_at, revoked_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13);

-- name: revoke_key
UPDATE api_key SET revoked_at = ?3
WHERE namespace = ?1 AND id = ?2 AND revoked_at IS NULL;

-- name: revoke_keys_of
-- Index: api_key_account.
UPDATE api_key SET revoked_at = ?2
WHERE account_id = ?1 AND revoked_at IS NULL;

-- name: touch_key
UPDATE api_key SET last_used_at = ?2
WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?3);

-- name: list_keys
-- Index: api_key_namespace.
SELECT k.id, k.kind, k.namespace, k.name, k.secret_hash, k.created_at, k.created_by, k.account_id,
    k.scopes, k.queues, k.expires_at, k.last_used_at, k.revoked_at
FROM api_key AS k
WHERE k.namespace = ?1 AND k.id > ?2
ORDER BY k.id
LIMIT ?3;

-- name: find_key_holders
-- Index: primary keys.
SELECT k.id, k.kind, k.namespace, k.name, k.secret_hash, k.created_at, k.created_by, k.account_id,
    k.scopes, k.queues, k.expires_at, k.last_used_at, k.revoked_at,
    a.id, a.kind, a.name, a.email, a.namespace, a.created_at, a.created_by, a.disabled_at,
    m.namespace, m.role
FROM json_each(?1) AS wanted
CROSS JOIN api_key AS k ON k.id = json_extract(wanted.value, '$[0]')
LEFT JOIN account AS a ON a.id = k.account_id
LEFT JOIN membership AS m ON m.account_id = k.account_id;

-- name: add_invitation
INSERT INTO invitation
    (id, secret_hash, namespace, role, created_at, created_by, expires_at, email, used_at, used_by)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: get_invitation
SELECT id, secret_hash, namespace, role, created_at, created_by, expires_at, email, used_at, used_by
FROM invitation
WHERE id = ?1;

-- name: use_invitation
UPDATE invitation SET used_at = ?3, used_by = ?2 WHERE id = ?1 AND used_at IS NULL;

-- name: drop_invitation
DELETE FROM invitation WHERE namespace = ?1 AND id = ?2 AND used_at IS NULL;

-- name: drop_invitations_by
-- All invitations are read: there are few, and it is rare.
DELETE FROM invitation WHERE created_by = ?1 AND used_at IS NULL;

-- name: list_invitations
-- Index: invitation_namespace.
SELECT id, secret_hash, namespace, role, created_at, created_by, expires_at, email, used_at, used_by
FROM invitation
WHERE namespace = ?1 AND id > ?2
ORDER BY id
LIMIT ?3;
