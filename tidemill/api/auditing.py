"""What requests have done goes into the audit log here, for every endpoint that says so."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.api.call import Call
from tidemill.api.routing import Answer
from tidemill.engine.identity.context import Caller

TARGET_CHARACTERS_MAX = 256


async def record(call: Call, action: str, target: Sequence[str], answer: object) -> None:
    """Note who did what, from where, to what the path names or else to what was made."""
    caller = Caller(
        principal=call.principal,
        namespace=call.namespace,
        address=call.peer,
        request_id=call.request_id,
    )
    named = "/".join(target) or _made(answer)
    deed = caller.deed(call.services.clock.now(), action, _plain(named))
    await call.services.auditor.record(deed)


def _made(answer: object) -> str:
    value = answer.value if isinstance(answer, Answer) else answer
    return str(getattr(value, "name", "") or getattr(value, "id", ""))


def _plain(text: str) -> str:
    """What every database takes: no control characters, no halves of characters, not endless."""
    shown = "".join(one if one.isprintable() else "?" for one in text[:TARGET_CHARACTERS_MAX])
    return shown.encode(errors="replace").decode()
