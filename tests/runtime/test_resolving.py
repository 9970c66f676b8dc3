"""Where settings come from, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.domain.errors import InvalidInput
from tidemill.runtime.resolving import resolve
from tidemill.runtime.setting_kinds import shown


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(
    folder: Path,
) -> None:
    (folder / "tidemill.toml").write_text("slots = 1\ngrace = 2\nworkers = 3\n")
    environ = {"TIDEMILL_SLOTS": "4", "TIDEMILL_GRACE": "5"}

    found = resolve("up", {"slots": ["6"]}, environ)

    settings = found.settings
    assert (settings.slots, settings.grace, settings.workers) == (6, 5.0, 3)
    names = ("slots", "grace", "workers", "queues")
    assert [found.origins[name] for name in names] == [
        "flag --slots",
        "env TIDEMILL_GRACE",
        "file tidemill.toml:workers",
        "default",
    ]


def test_lists_and_maps_are_natural_in_a_file_and_short_elsewhere(folder: Path) -> None:
    text = 'queues = ["a", "b"]\nimports = ["shop"]\n[labels]\ngpu = "a100"\n'
    (folder / "tidemill.toml").write_text(text)

    filed = resolve("worker", {}, {}).settings
    spoken = resolve("worker", {"queues": ["a,b"], "labels": ["gpu=a100,zone=eu"]}, {}).settings

    assert (filed.queues, filed.labels, filed.imports) == (("a", "b"), {"gpu": "a100"}, ("shop",))
    assert (spoken.queues, spoken.labels) == (("a", "b"), {"gpu": "a100", "zone": "eu"})


def test_the_file_is_named_by_flag_or_environment_or_not_read(folder: Path) -> None:
    (folder / "tidemill.toml").write_text("slots = 1")
    (folder / "other.toml").write_text("slots = 2")

    assert resolve("run", {}, {}).settings.slots == 1
    assert resolve("run", {}, {"TIDEMILL_CONFIG": "other.toml"}).settings.slots == 2
    assert resolve("run", {}, {"TIDEMILL_CONFIG": ""}).settings.slots == 64
    assert resolve("run", {}, {"TIDEMILL_CONFIG": ""}, "other.toml").settings.slots == 2


def test_everything_wrong_is_told_at_once_and_where_it_was_said(folder: Path) -> None:
    (folder / "tidemill.toml").write_text('slotz = 1\nqueues = "a"\nworkers = true\ntoken = "x"\n')
    environ = {"TIDEMILL_GRACE": "long", "TIDEMILL_SCAN_SECONDS": "99"}

    with pytest.raises(InvalidInput) as refused:
        resolve("up", {"slots": ["0"]}, environ)

    assert [str(problem) for problem in refused.value.problems] == [
        'tidemill.toml: slotz: is no setting, did you mean "slots"?',
        "tidemill.toml: queues: must be a list, not 'a'",
        "tidemill.toml: workers: must be a whole number, not True",
        "tidemill.toml: token: does not belong in a file: use TIDEMILL_TOKEN",
        "TIDEMILL_GRACE: must be a number, not 'long'",
        "--slots: must be between 1 and 1000, not 0",
        "TIDEMILL_SCAN_SECONDS: must be between 0.05 and 60, not 99",
    ]


def test_a_setting_of_another_role_is_checked_and_not_in_force(folder: Path) -> None:
    (folder / "tidemill.toml").write_text('listen = "0.0.0.0:7300"\nstore = "a.db"\n')

    assert resolve("run", {}, {}).settings.listen is None
    (folder / "tidemill.toml").write_text('listen = "everywhere"\n')
    with pytest.raises(
        InvalidInput, match=r"tidemill\.toml: listen: 'everywhere' is not HOST:PORT"
    ):
        resolve("run", {}, {})


@pytest.mark.parametrize(
    ("text", "words"), [("slots = ", "is not TOML"), ("slots = 1\nslots = 2", "is not TOML")]
)
def test_a_file_that_is_no_toml_is_named(folder: Path, text: str, words: str) -> None:
    (folder / "bad.toml").write_text(text)

    with pytest.raises(InvalidInput, match=rf"bad\.toml: {words}"):
        resolve("run", {}, {}, "bad.toml")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"gone\.toml: cannot be read: No such file"):
        resolve("run", {}, {}, "gone.toml")


def test_no_value_that_is_shown_holds_a_password() -> None:
    flags = {"store": ["postgresql://me:secret@host/db"], "bus": ["kafka://me:secret@host"]}

    settings = resolve("scheduler", flags, {}).settings

    assert shown(settings.store) == "postgresql://me:***@host/db"
    assert shown(settings.bus) == "kafka://me:***@host"


def test_no_complaint_holds_a_password(folder: Path) -> None:
    (folder / "tidemill.toml").write_text('store = ["postgresql://me:secret@host/db"]\n')

    with pytest.raises(InvalidInput) as refused:
        resolve("run", {"bus": ["http://me:secret@host"]}, {"TIDEMILL_VIA": "x://me:secret@host"})

    assert len(refused.value.problems) == 3
    assert "secret" not in str(refused.value)


def test_roles_have_defaults_of_their_own() -> None:
    assert resolve("scheduler", {}, {}).settings.listen_workers == "127.0.0.1:7300"
    assert resolve("up", {}, {}).settings.listen_workers is None
    assert resolve("up", {}, {}).settings.listen == "127.0.0.1:8080"
    assert resolve("up", {}, {}).settings.auth == "single-user"
    assert resolve("api", {}, {}).settings.auth == "identity"
