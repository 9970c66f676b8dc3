"""Tasks and a workflow of a small shop, as a user would write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import msgspec
import pydantic

from tidemill import RetryPolicy, task, workflow


@dataclass
class Order:
    """A dataclass."""

    id: str
    total: float


class Receipt(msgspec.Struct, rename="camel"):
    """A Struct whose fields have other names in JSON."""

    order_id: str
    paid: bool


class Letter(pydantic.BaseModel):
    """A model of pydantic."""

    to: str
    lines: list[str] = []


class Address(TypedDict):
    """A dict with known keys."""

    street: str
    number: int


@task(retries=5, timeout=30)
def fetch(order_id: str) -> Order:
    """Find an order."""
    return Order(id=order_id, total=12.5)


@task(retry=RetryPolicy(max_retries=0), queue="money", labels={"zone": "eu"}, priority=7)
async def pay(order: Order, currency: str = "EUR") -> Receipt:
    """Take the money."""
    assert isinstance(order, Order)
    return Receipt(order_id=order.id, paid=True)


@task
def write(to: str, receipts: list[Receipt]) -> Letter:
    """Write to the customer."""
    assert all(isinstance(receipt, Receipt) for receipt in receipts)
    return Letter(to=to, lines=[receipt.order_id for receipt in receipts])


@task
def send(letter: Letter, address: Address) -> str:
    """Send the letter."""
    assert isinstance(letter, Letter)
    return f"{letter.to}, {address['street']} {address['number']}: {' '.join(letter.lines)}"


@workflow(labels={"team": "shop"}, timeout=3600)
def orders(first: str, second: str = "b", address: Address | None = None) -> str:
    """Pay two orders and send one letter."""
    receipts = [pay(fetch(first)), pay(fetch(second), currency="USD")]
    letter = write(to="you", receipts=receipts)
    return send(letter, {"street": "Quay", "number": 1})
