"""Secrets of the store on their way to a worker: opened for the one assignment that names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tidemill.ports.reading import Payloads
from tidemill.ports.secrets import CannotUnseal, Sealing, SecretKey
from tidemill.protocol.messages import Assignment
from tidemill.scheduler.admission import Grant
from tidemill.scheduler.assignments import Built
from tidemill.scheduler.pools import Pool

NO_KEY = "the scheduler cannot open it: give it --secrets-key-file and the extra `secrets`"


class HandedSecrets:
    """Adds to assignments what the inputs of their tasks name; nothing of it is kept or logged."""

    def __init__(self, payloads: Payloads) -> None:
        self.sealing: Sealing | None = None
        self._payloads = payloads

    def are_named(self, grants: Sequence[Grant]) -> bool:
        """Whether the inputs of some task name a secret."""
        return any(grant.plan.nodes[grant.task.node].secrets for grant in grants)

    async def add_to(self, built: Sequence[Built]) -> list[Built]:
        """The same assignments, with their secrets, or with the reason why some are not there."""
        keys = {key for grant, _ in built for key in _named(grant)}
        if not keys:
            return list(built)
        sealed = await self._payloads.secrets(sorted(keys))
        return [Built(grant, self._with_secrets(grant, one, sealed)) for grant, one in built]

    def _with_secrets(
        self, grant: Grant, assignment: Assignment, sealed: Mapping[SecretKey, bytes]
    ) -> Assignment:
        stored = [key for key in _named(grant) if key in sealed]
        if not stored or isinstance(grant.session, Pool):
            return assignment  # whoever reads the topics of a broker would see them
        if self.sealing is None:
            return msgspec.structs.replace(assignment, secrets_trouble=NO_KEY)
        try:
            opened = {key.name: self.sealing.unseal(key, sealed[key]) for key in stored}
        except CannotUnseal as error:
            return msgspec.structs.replace(assignment, secrets_trouble=str(error))
        return msgspec.structs.replace(assignment, secrets=opened)


def _named(grant: Grant) -> list[SecretKey]:
    names = grant.plan.nodes[grant.task.node].secrets
    return [SecretKey(grant.task.namespace, name) for name in names]
