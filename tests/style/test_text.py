"""What no file of the repository may contain: traces of the machine it was written on."""

from __future__ import annotations

import re

from tests.style.sources import text_files

# Put together from parts, so that this file does not find itself.
_FOLDERS = "|".join(["work", "farm", "root", "home/[a-z]", "Users/[A-Za-z]", "tmp/scratch"])
MACHINE_PATH = re.compile(rf"(^|[^\w.~$}}\])])/({_FOLDERS})/", re.MULTILINE)
DOWNLOAD_ADDRESS = re.compile("|".join(["pypi" + r"\.org", "python" + "hosted", "index-" + "url"]))
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b")


def _files_with(pattern: re.Pattern[str], *, without: frozenset[str] = frozenset()) -> list[str]:
    return [
        f"{path}: {found.group(0).strip()}"
        for path, text in text_files().items()
        if path not in without
        for found in pattern.finditer(text)
    ]


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    assert _files_with(MACHINE_PATH) == []


def test_no_file_says_where_packages_are_downloaded() -> None:
    # The Makefile names the flag that keeps addresses out of the lock files.
    assert _files_with(DOWNLOAD_ADDRESS, without=frozenset({"Makefile"})) == []


def test_nothing_is_left_unfinished() -> None:
    assert _files_with(UNFINISHED) == []
