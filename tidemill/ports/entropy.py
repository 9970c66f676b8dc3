"""Randomness, as roles see it."""

from __future__ import annotations

from typing import Protocol

from tidemill.domain.identifiers import RunId, SessionId


class Entropy(Protocol):
    """Where chance and fresh names come from."""

    def fraction(self) -> float:
        """A number from 0 up to, not including, 1: for jitter."""

    def run_id(self) -> RunId:
        """A fresh UUIDv7."""

    def session_id(self) -> SessionId:
        """A fresh name for a session."""

    def secret(self) -> str:
        """A secret that nobody can guess: 256 bits, as text."""
