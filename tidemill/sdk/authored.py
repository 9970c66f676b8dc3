"""What Python authoring makes of functions, as seen by those who only need to recognise it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from tidemill.domain.workflow import Workflow


class AuthoredTask:
    """A decorated function: `function` is the plain one, `name` is how workers find it."""

    function: Callable[..., Any]
    name: str


class AuthoredWorkflow:
    """A decorated function that describes a workflow."""

    name: str

    @property
    @abstractmethod
    def definition(self) -> Workflow:
        """The workflow as data; InvalidWorkflow with everything that is wrong with it."""


def plain_function(found: Any) -> Any:
    """The function that a worker calls: what a decorated task is made of, or the thing itself."""
    return found.function if isinstance(found, AuthoredTask) else found


__all__ = ["AuthoredTask", "AuthoredWorkflow", "plain_function"]
