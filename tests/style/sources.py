"""Which files the style tests read."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_GENERATED = "tidemill/protocol/generated/"


@dataclass(frozen=True)
class Source:
    """One Python file: its path within the repository, its text and its tree."""

    path: str
    text: str
    tree: ast.Module


def python_files(*folders: str) -> list[Source]:
    """Every Python file below the folders that a person wrote."""
    return [
        Source(path, text, ast.parse(text))
        for path, text in text_files().items()
        if path.endswith(".py")
        and path.startswith(tuple(f"{folder}/" for folder in folders))
        and not path.startswith(_GENERATED)
    ]


@cache
def text_files() -> dict[str, str]:
    """Every text file that is, or is about to be, part of the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    texts: dict[str, str] = {}
    for path in sorted(filter(None, listing.split("\0"))):
        try:
            texts[path] = (ROOT / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # an image, or a file deleted but not yet committed so
    return texts
