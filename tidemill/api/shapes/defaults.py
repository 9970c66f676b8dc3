"""What a task is run by when it does not say."""

from __future__ import annotations

from tidemill.api.call import Call

BUILT_IN = "default"
"""The executor of tasks that name none, in a namespace that does not say otherwise."""


async def default_executor(call: Call) -> str:
    """The executor that the namespace of the request gives to tasks without a type."""
    namespace = await call.services.store.identity.namespace(call.namespace)
    return BUILT_IN if namespace is None else namespace.default_executor or BUILT_IN
