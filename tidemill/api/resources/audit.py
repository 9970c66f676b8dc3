"""/v1/audit: who did what, and whether the log is whole."""

from __future__ import annotations

from typing import cast

from tidemill.api.cursors import NumberCursor, decode_cursor, paged
from tidemill.api.routing import Call, endpoint
from tidemill.api.views import time_view
from tidemill.domain.audit import AuditEntry
from tidemill.domain.errors import Forbidden
from tidemill.domain.permissions import SYSTEM_NAMESPACE, Permission
from tidemill.engine.identity.audit import verify
from tidemill.ports import identity as ports
from tidemill.protocol.resources.identity import AuditQuery, AuditVerdict, AuditView
from tidemill.protocol.resources.values import Page, Time


@endpoint(
    "GET",
    "/v1/audit",
    permission=Permission.AUDIT_READ,
    summary="List what was done, newest first",
    tag="audit",
    errors=("FORBIDDEN",),
)
async def list_audit(call: Call, query: AuditQuery) -> Page[AuditView]:
    """In the namespace of the request, or `everywhere` for those who administer the system.

    Logins, users and namespaces belong to no namespace: they are listed everywhere only.
    """
    if query.everywhere and not call.principal.may(SYSTEM_NAMESPACE, Permission.AUDIT_READ):
        raise Forbidden("the whole log is for administrators of the whole system")
    after = decode_cursor(query.after, NumberCursor)
    wanted = ports.AuditQuery(
        namespace=None if query.everywhere else call.namespace,
        action=query.action,
        actor=query.actor,
        before=after.number if after else None,
        limit=query.limit + 1,
    )
    found = await call.services.store.identity.entries(wanted)
    return paged(found, query.limit, _view, lambda one: NumberCursor(one.number))


@endpoint(
    "GET",
    "/v1/audit/verify",
    permission=Permission.AUDIT_READ,
    summary="Verify the chain of the audit log",
    tag="audit",
)
async def verify_audit(call: Call) -> AuditVerdict:
    """Reads the whole log. Keep the number and the hash elsewhere to notice a log made anew."""
    verdict = await verify(call.services.store)
    return AuditVerdict(
        holds=verdict.broken_at is None,
        entries=verdict.entries,
        hash=verdict.hash,
        broken_at=verdict.broken_at,
    )


def _view(entry: AuditEntry) -> AuditView:
    deed = entry.deed
    return AuditView(
        number=entry.number,
        at=cast(Time, time_view(deed.at)),
        actor=deed.actor,
        actor_name=deed.actor_name,
        action=deed.action,
        namespace=deed.namespace,
        target=deed.target,
        outcome=deed.outcome,
        address=deed.address,
        request_id=deed.request_id,
        detail=dict(deed.detail),
        hash=entry.hash,
    )


ENDPOINTS = (list_audit, verify_audit)
