"""Secrets as arguments of tasks: named in the definition, looked up by the worker."""

from __future__ import annotations

import os
from typing import cast

from tidemill.authoring.building import current_builder
from tidemill.authoring.placeholders import Placeholder, Reference
from tidemill.sdk.context import current_context
from tidemill.sdk.secrets import VARIABLE_PREFIX, SecretSources


def secret(name: str) -> str:
    """A secret by its name: in a workflow function, to be passed to a task; elsewhere its value."""
    builder = current_builder()
    if builder is not None:
        return cast("str", Placeholder(Reference(owner=builder, task=None, secret=name, kind=str)))
    context = current_context()
    if context is not None:
        return context.secret(name)
    return secrets_of_environment().find(name)


def secrets_of_environment() -> SecretSources:
    """The secrets that this process was started with."""
    given = {name: text for name, text in os.environ.items() if name.startswith(VARIABLE_PREFIX)}
    return SecretSources(environment=given)


__all__ = ["secret", "secrets_of_environment"]
