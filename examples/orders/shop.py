"""A small shop for the orders example: orders, payments and notifications over HTTP.

Its payment service is busy the first time it sees a key, and charges once per key after that.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ORDERS: dict[str, dict[str, Any]] = {
    "A-1042": {
        "id": "A-1042",
        "customer": "Ada",
        "items": [
            {"name": "rye flour, 5 kg", "price": 11.5, "count": 2},
            {"name": "millstone, small", "price": 89.0, "count": 1},
        ],
    },
}


class Shop:
    """The server and what it remembers; listens on a free loopback port unless told which."""

    def __init__(self, port: int = 0) -> None:
        self.keys_seen: set[str] = set()
        self.payments: dict[str, dict[str, Any]] = {}
        self.notifications: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        shop = self

        class Handler(_Handler):
            """Serves this shop."""

            owner = shop

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Shop:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, key: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        """Status and JSON for one request; a body means POST."""
        with self._lock:
            match path.strip("/").split("/"):
                case ["orders", order_id] if body is None and order_id in ORDERS:
                    return 200, ORDERS[order_id]
                case ["payments"] if body is not None:
                    return self._pay(key, body)
                case ["notifications"] if body is not None:
                    self.notifications.append(body)
                    return 200, {"told": body["customer"]}
                case _:
                    return 404, {"error": f"nothing at {path}"}

    def _pay(self, key: str, body: dict[str, Any]) -> tuple[int, Any]:
        if key not in self.keys_seen:
            self.keys_seen.add(key)
            return 503, {"error": "the payment service is busy, try again"}
        receipt = f"R-{len(self.payments) + 1:04}"
        return 200, self.payments.setdefault(key, {"receipt": receipt, "amount": body["amount"]})


class _Handler(BaseHTTPRequestHandler):
    owner: Shop

    def do_GET(self) -> None:
        self._reply(None)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._reply(json.loads(self.rfile.read(length)))

    def _reply(self, body: dict[str, Any] | None) -> None:
        key = self.headers.get("Idempotency-Key", "")
        status, answer = self.owner.answer(self.path, key, body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        """The runs tell the story already."""


def main() -> None:
    """Serve until Ctrl-C."""
    with Shop(int(sys.argv[1]) if len(sys.argv) > 1 else 0) as shop:
        print(f"the shop is open at {shop.address}; Ctrl-C closes it")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("closed")


if __name__ == "__main__":
    main()
