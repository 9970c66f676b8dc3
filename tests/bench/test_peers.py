"""Peers of the bench: their locks, their drivers, and that nothing of them stays behind."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from bench.peers import PEERS, measuring
from bench.peers.drivers.gauge import Figures, Order
from bench.peers.environments import LOCKS, version_of
from bench.stage import Stage

NAMES = [peer.name for peer in PEERS]


@pytest.fixture
def stage() -> Stage:
    said = list[str]()
    stage = Stage(
        quick=True, repeats=1, fresh_store=lambda: pytest.fail("no store"), say=said.append
    )
    stage.settings["said"] = said
    return stage


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> measuring.Driver:
    monkeypatch.setattr(measuring, "DRIVERS", tmp_path)
    return measuring.Driver("fake", Path(sys.executable))


@pytest.mark.parametrize("peer", NAMES)
def test_a_lock_has_hashes_and_no_addresses(peer: str) -> None:
    text = (LOCKS / f"{peer}.txt").read_text()

    assert "://" not in text
    assert len(re.findall(r"^\S+==", text, re.MULTILINE)) <= text.count("--hash=sha256:")
    assert re.fullmatch(r"[\d.]+", version_of(peer))


@pytest.mark.parametrize("peer", NAMES)
def test_every_peer_has_a_driver(peer: str) -> None:
    assert measuring.Driver(peer, Path(sys.executable)).script.is_file()


def test_every_peer_says_what_a_crash_costs() -> None:
    assert all(peer.losses.endswith(".") for peer in PEERS)


async def test_what_a_driver_prints_becomes_samples(driver: measuring.Driver, stage: Stage) -> None:
    sample = '{"workload": "hop", "variant": "steps", "metric": "m", "unit": "s", "repeats": [2]}'
    _write(driver, f"""print('{{"say": "hello"}}'); print('{{"samples": [{sample}]}}')""")

    (found,) = await measuring._drive(driver, "url", stage)

    assert (found.workload, found.variant, list(found.repeats)) == ("hop", "steps", [2])
    assert stage.settings["said"] == ["hello"]


async def test_a_driver_that_fails_is_told_with_its_last_words(
    driver: measuring.Driver, stage: Stage
) -> None:
    _write(driver, "raise SystemExit('out of fish')")

    with pytest.raises(RuntimeError, match=r"ended \(1\): out of fish"):
        await measuring._drive(driver, "url", stage)


async def test_what_a_driver_leaves_behind_is_ended(
    driver: measuring.Driver, stage: Stage, tmp_path: Path
) -> None:
    _write(
        driver,
        f"""\
        import pathlib, subprocess
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        pathlib.Path({str(tmp_path)!r}, "pid").write_text(str(child.pid))
        raise SystemExit("gone")
        """,
    )

    with pytest.raises(RuntimeError, match="gone"):
        await measuring._drive(driver, "url", stage)

    assert not _runs(int((tmp_path / "pid").read_text()))


def test_hops_are_the_times_between_beginnings(capsys: pytest.CaptureFixture[str]) -> None:
    order = Order(url="", folder=Path(), quick=True, repeats=1, variant="everysec")
    figures = Figures(order)

    figures.add_hops("hop-steps", [[1.0, 1.001, 1.003], [5.0, 5.002, 5.010]])

    ((*name, metric), middle), (_, worst) = figures.samples.items()
    assert (*name, metric) == ("hop", "steps-everysec", "hop_p50_ms")
    assert middle["repeats"] == [pytest.approx(2.0)]
    assert worst["repeats"] == [pytest.approx(8.0)]


def _write(driver: measuring.Driver, text: str) -> None:
    driver.script.write_text(dedent(text))


def _runs(pid: int) -> bool:
    # Orphans wait as zombies until the system's first process looks after them.
    return bool(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
