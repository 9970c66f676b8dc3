"""Which worker may serve what: its credential names a namespace and queues."""

from __future__ import annotations

from tidemill.domain.errors import Forbidden
from tidemill.domain.principals import Principal, PrincipalKind
from tidemill.domain.problems import show
from tidemill.protocol.messages import Hello, WorkerMessage

QUEUES_SHOWN_MAX = 5

NEEDED = PrincipalKind.WORKER
"""What Attach asks for; whoever stands in for all of them, without identity, may as well."""


def check_worker(caller: Principal, first: WorkerMessage) -> None:
    """Forbidden when a stream that begins with this message is not for the caller."""
    if caller.kind is PrincipalKind.SINGLE_USER:
        return
    if caller.kind is not NEEDED:
        raise Forbidden(
            f"workers need a credential of their own (tmw_…), not that of a {caller.kind}: "
            "make one with `tidemill keys create NAME --worker-queue QUEUE`"
        )
    if not isinstance(first, Hello):
        return  # the door wants a Hello, and says so
    name = show(caller.name)
    if first.namespace != caller.namespace:
        raise Forbidden(
            f"credential {name} is for namespace {show(caller.namespace)}, "
            f"not for {show(first.namespace)}"
        )
    beyond = [queue for queue in first.queues if queue not in caller.queues]
    if beyond:
        raise Forbidden(
            f"credential {name} is for queue {_listed(caller.queues)}, not for {_listed(beyond)}"
        )


def _listed(queues: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(show(queue) for queue in queues[:QUEUES_SHOWN_MAX])
    return shown if len(queues) <= QUEUES_SHOWN_MAX else f"{shown} and {len(queues)} in all"
