"""What a process asks of the interpreter, and which loop it runs on."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import weakref
from collections.abc import Iterator

import pytest

from tidemill.runtime.loops import run_serving
from tidemill.runtime.tuning import (
    SWITCH_SECONDS,
    USER_OBJECTS_MAX,
    YOUNG_OBJECTS_MAX,
    settle_in_beside_user_code,
    settled_in,
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The interpreter of the other tests."""
    thresholds, seconds = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(seconds)


def test_a_serving_process_spares_the_collector_what_stays() -> None:
    with settled_in():
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] == YOUNG_OBJECTS_MAX
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)


def test_the_interpreter_is_given_back_as_it_was() -> None:
    def told() -> tuple[object, ...]:
        return gc.get_freeze_count(), gc.get_threshold(), sys.getswitchinterval()

    before = told()
    with settled_in():
        pass

    assert told() == before


def test_nothing_of_a_system_stays_once_another_one_serves() -> None:
    class System:
        """Knows itself, as those do whose parts call each other."""

        def __init__(self) -> None:
            self.itself = self

    system = System()
    left = weakref.ref(system)
    with settled_in():
        del system
    with settled_in():
        assert left() is None


def test_a_worker_collects_the_garbage_of_user_code_more_often_than_servers_do() -> None:
    settle_in_beside_user_code()

    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == USER_OBJECTS_MAX < YOUNG_OBJECTS_MAX


def test_whoever_embeds_roles_has_grpc_leave_forks_alone() -> None:
    assert os.environ["GRPC_ENABLE_FORK_SUPPORT"] == "0"


def test_roles_run_on_uvloop_where_it_is_installed() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def loop_of() -> object:
        return asyncio.get_running_loop()

    assert isinstance(run_serving(loop_of()), uvloop.Loop)
