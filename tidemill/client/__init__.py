"""A client for Tidemill servers: asynchronous, and a blocking twin over the same code."""

from tidemill.client.blocking import BlockingClient, BlockingRunHandle
from tidemill.client.client import Client, RunHandle
from tidemill.client.errors import RunFailed

__all__ = ["BlockingClient", "BlockingRunHandle", "Client", "RunFailed", "RunHandle"]
