"""Who owns a SQLite file: at most one process at a time, known by its pid.

The kernel's lock on the lock file is the truth, its content only tells people and programs who
holds it. The kernel drops the lock when the process ends, however it ends, so a lock file left
behind by a crash is no obstacle. The file itself is never deleted: a process that still waits for
the old file and one that creates a new file would both be owner.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tidemill.domain.errors import InvalidInput, Problem, StoreOwned
from tidemill.domain.identifiers import Moment

FOLDER_PREFIX = "tidemill-"
SHORT_FOLDER = "/tmp"  # noqa: S108 - only to make a folder of a random name in it
SOCKET_CHARACTERS_MAX = 80
"""The kernel takes some hundred characters as the path of a socket."""


class OwnerCard(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner tells about itself."""

    pid: int
    started_at: Moment
    http: str | None = None  # the base URL of its HTTP API, if others may reach it by one
    http_socket: str | None = None  # the same API over a unix socket, for this user


@dataclass(slots=True)
class Ownership:
    """The right to write to one store, until it is released or the process ends."""

    path: Path
    _descriptor: int | None

    def introduce(self, card: OwnerCard) -> None:
        """Tell others who the owner is and where it takes commands."""
        assert self._descriptor is not None, "released already"
        data = msgspec.json.encode(card)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, data, 0)

    def release(self) -> None:
        """Let others become owner; safe to call twice."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def lock_path(store: Path) -> Path:
    """The lock file that belongs to a SQLite file."""
    return store.with_name(store.name + ".lock")


def take_ownership(store: Path) -> Ownership:
    """Become owner, or raise StoreOwned naming the process that is."""
    path = lock_path(store)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}; use another place"
        raise InvalidInput([Problem(path="--store", message=message, code="store")]) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise _owned(store) from None
    _clear_away(_read_card(descriptor))
    os.ftruncate(descriptor, 0)
    return Ownership(store, descriptor)


def private_folder() -> Path:
    """A new folder for sockets that only this user may enter."""
    folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
    if len(folder) > SOCKET_CHARACTERS_MAX:
        Path(folder).rmdir()
        folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=SHORT_FOLDER)
    return Path(folder)


def _clear_away(card: OwnerCard) -> None:
    """Remove the private folder of an owner that was killed: who lets go in order tears its card.

    Only a folder of this user that has the name and the place of one: the card is just a file.
    """
    folder = Path(card.http_socket or "").parent
    places = {Path(tempfile.gettempdir()), Path(SHORT_FOLDER)}
    if not folder.name.startswith(FOLDER_PREFIX) or folder.parent not in places:
        return
    with contextlib.suppress(OSError):
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            shutil.rmtree(folder, ignore_errors=True)


def find_owner(store: Path) -> OwnerCard | None:
    """The process that owns the store right now; None when nobody does.

    An owner that has not introduced itself yet has pid 0 and no socket.
    """
    try:
        descriptor = os.open(lock_path(store), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # Shared, so that two who ask at once do not take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_card(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _read_card(descriptor: int) -> OwnerCard:
    try:
        return msgspec.json.decode(os.pread(descriptor, 65_536, 0), type=OwnerCard)
    except msgspec.DecodeError:
        return OwnerCard(pid=0, started_at=0)


def _owned(store: Path) -> StoreOwned:
    card = find_owner(store)
    pid = card.pid if card is not None else 0
    who = f"process {pid}" if pid else "another process that is just starting or ending"
    return StoreOwned(
        f"{store} is owned by {who}: hand it runs with `tidemill start`, wait for it to end, "
        "stop it, or use another --store",
        pid=pid,
    )
