"""Secrets by name: values go in and never come out."""

from __future__ import annotations

from tidemill.client.calls import Calls, place
from tidemill.protocol.resources import Page
from tidemill.protocol.resources.secrets import PutSecret, SecretPutView, SecretView


class SecretCalls(Calls):
    """Secrets of the namespace."""

    async def secrets(self) -> tuple[SecretView, ...]:
        """Their names."""
        return (await self._get(place("secrets"), Page[SecretView])).items

    async def put_secret(self, name: str, value: str) -> SecretPutView:
        """Set the value of a secret, new or not."""
        return await self._change(
            "PUT", place("secrets", name), SecretPutView, PutSecret(value=value)
        )

    async def delete_secret(self, name: str) -> None:
        """Take a secret away."""
        await self._send("DELETE", place("secrets", name))
