"""Finding the circles in a graph of tasks, without recursion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

SHOWN_TASKS_MAX = 12


class Cycle(NamedTuple):
    """Tasks that wait for each other, each before the one it waits for.

    `child` waits for `parent`, and without this edge the circle is broken.
    """

    tasks: tuple[str, ...]
    child: str
    parent: str

    def __str__(self) -> str:
        names = [*self.tasks, self.tasks[0]]
        if len(names) > SHOWN_TASKS_MAX:
            hidden = len(names) - SHOWN_TASKS_MAX
            half = SHOWN_TASKS_MAX // 2
            names = [*names[:half], f"… {hidden:,} more …", *names[-half:]]
        return " → ".join(names)


def find_cycles(parents: Mapping[str, Sequence[str]]) -> Iterator[Cycle]:
    """One cycle for each edge that a depth-first walk finds to lead back; self-loops are left out.

    Without these edges the graph has no cycle. Parents that are not keys are ignored.
    """
    order = {name: number for number, name in enumerate(parents)}
    done: set[str] = set()
    for root in parents:
        if root not in done:
            yield from _walk(root, parents, order, done)


def _walk(
    root: str, parents: Mapping[str, Sequence[str]], order: Mapping[str, int], done: set[str]
) -> Iterator[Cycle]:
    path = [root]
    place = {root: 0}
    pending = [iter(parents[root])]
    while path:
        parent = next(pending[-1], None)
        if parent is None:
            done.add(path[-1])
            del place[path.pop()]
            pending.pop()
        elif parent in place:
            if parent != path[-1]:
                yield _cycle(path[place[parent] :], order)
        elif parent in parents and parent not in done:
            place[parent] = len(path)
            path.append(parent)
            pending.append(iter(parents[parent]))


def _cycle(path: Sequence[str], order: Mapping[str, int]) -> Cycle:
    """The walk goes from child to parent, and its last step leads back to where it began."""
    first = path.index(min(path, key=order.__getitem__))
    return Cycle((*path[first:], *path[:first]), child=path[-1], parent=path[0])


__all__ = ["Cycle", "find_cycles"]
