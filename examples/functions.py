"""The functions of functions.yaml."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from tidemill import FinalError, context


def split(text: str) -> list[str]:
    """Refuse what no retry can mend with FinalError; any other error is tried again."""
    words = text.split()
    if not words:
        raise FinalError("the text has no words")
    print(f"{len(words)} words")
    return words


def count(words: list[str]) -> dict[str, int]:
    """Count the words, and say how far it has come."""
    counted: Counter[str] = Counter()
    for done, word in enumerate(words, 1):
        counted[word] += 1
        context().progress(done / len(words), word)
    return dict(counted)


async def greet(words: list[str], seconds: float) -> dict[str, Any]:
    """Wait without blocking anybody."""
    await asyncio.sleep(seconds)
    return {"text": f"Good morning, {words[0]}.", "attempt": context().attempt}
