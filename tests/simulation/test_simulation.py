"""The simulator on a leash: a few seeds, the seeds that once found a bug, and every known bug."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.runner import compare_buses

ROOT = Path(__file__).resolve().parents[2]


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the simulator as a program, with the order of sets pinned as it always is there."""
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_seeds_that_once_found_a_bug_and_some_others_are_clean() -> None:
    told = simulate("--seeds", "60", "--jobs", "1")

    assert told.returncode == 0, told.stdout
    assert "0 violations" in told.stdout


def test_a_seed_tells_the_same_story_in_every_process() -> None:
    first, second = simulate("--seed", "7"), simulate("--seed", "7")

    assert "history" in first.stdout
    assert first.stdout == second.stdout


@pytest.mark.parametrize("seed", range(5))
def test_a_world_without_its_bus_ends_in_the_same_states(seed: int) -> None:
    assert compare_buses(seed) == []


@pytest.mark.parametrize("name", [mutant.name for mutant in MUTANTS])
def test_a_known_bug_is_caught_within_its_budget(name: str) -> None:
    told = simulate("--mutants", name)

    assert told.returncode == 0, told.stdout + told.stderr
    assert "ESCAPED" not in told.stdout
