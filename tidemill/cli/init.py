"""`tidemill init`: a first project that runs, to begin from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from tidemill.cli.options import json_option

FILES = {
    "flow.py.txt": "flow.py",
    "test_flow.py.txt": "test_flow.py",
    "README.md.txt": "README.md",
    "tidemill.toml.txt": "tidemill.toml",
    "gitignore.txt": ".gitignore",
}


@click.command(short_help="Write a first project.")
@click.argument("folder", metavar="[DIR]", default=".")
@json_option
def init(folder: str, as_json: bool) -> None:
    """Write a first project to DIR, the working folder when it is not given.

    Nothing that is there already is touched: if one of the files exists, nothing is written.

    \b
    tidemill init my-project
    """
    from tidemill.cli.output import answer
    from tidemill.domain.errors import Conflict

    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise Conflict(f"{folder} is a file: name a folder")
    present = [name for name in FILES.values() if (place / name).exists()]
    if present:
        names = ", ".join(present)
        raise Conflict(f"{folder} has {names} already: name another folder")
    place.mkdir(parents=True, exist_ok=True)
    for template, name in FILES.items():
        (place / name).write_text(_text(template), encoding="utf-8")
    answer({"folder": folder, "files": list(FILES.values())}, _words(folder), as_json)


def _text(template: str) -> str:
    folder = resources.files("tidemill.cli") / "first_project"
    return (folder / template).read_text(encoding="utf-8")


def _words(folder: str) -> str:
    there = [f"cd {folder}"] if folder != "." else []
    lines = [f"wrote {', '.join(FILES.values())}", *there]
    return "\n".join(
        [*lines, "python -m pytest  # pip install pytest", "tidemill run flow.py", "tidemill up"]
    )
