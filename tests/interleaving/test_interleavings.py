"""Any two operations, in every order of their statements."""

from __future__ import annotations

import pytest

from tests.interleaving import operations
from tests.interleaving.mutants import MUTANTS, Mutant, applied
from tests.interleaving.operations import Action
from tests.interleaving.pairs import PAIRS, BrokenInvariant, check_pair
from tests.interleaving.stage import staged

FIRSTS = tuple(dict.fromkeys(first for first, _ in PAIRS))


@pytest.mark.parametrize("first", FIRSTS, ids=lambda action: action.__name__)
async def test_whatever_meets_this_operation_the_invariants_hold_in_every_order(
    postgres_dsn: str, first: Action
) -> None:
    async with staged(postgres_dsn) as stage:
        for pair in PAIRS:
            if pair[0] is first:
                explored = await check_pair(stage, *pair)
                assert explored.orders >= 1
                assert explored.deadlocks == 0, f"{pair} lock in different orders"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
async def test_a_known_bug_is_caught_in_the_orders_of_its_pair(
    postgres_dsn: str, mutant: Mutant
) -> None:
    async with staged(postgres_dsn) as stage:
        if mutant.schema_cut is not None:
            await stage.observer.execute(mutant.schema_cut)
        await check_pair(stage, *mutant.pair)

        with applied(mutant), pytest.raises(BrokenInvariant):
            await check_pair(stage, *mutant.pair)


@pytest.mark.parametrize(
    "pair",
    [(operations.cancel, operations.cancel), (operations.renew, operations.depart)],
    ids=lambda pair: "-".join(action.__name__ for action in pair),
)
async def test_orders_left_out_end_like_those_that_were_run(
    postgres_dsn: str, pair: tuple[Action, Action]
) -> None:
    async with staged(postgres_dsn) as stage:
        all_orders = await check_pair(stage, *pair, reduce=False)
        fewer = await check_pair(stage, *pair)

    assert fewer.endings == all_orders.endings
    assert fewer.orders < all_orders.orders
