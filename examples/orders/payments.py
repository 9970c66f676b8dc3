"""The payment step of the orders example: a plain Python function."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tidemill import context


def process_payment(shop: str, order: dict[str, Any]) -> dict[str, Any]:
    """Charge the customer. The key makes a second try harmless: the shop charges once per key."""
    task = context()
    total = sum(item["price"] * item["count"] for item in order["items"])
    print(f"charging {order['customer']} {total:.2f} (attempt {task.attempt})")
    request = urllib.request.Request(
        f"{shop}/payments",
        data=json.dumps({"order": order["id"], "amount": total}).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": task.idempotency_key},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        receipt: dict[str, Any] = json.load(answer)
    print(f"paid, receipt {receipt['receipt']}")
    return receipt
