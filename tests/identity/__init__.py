"""Identity: accounts, credentials, roles, the audit log."""
