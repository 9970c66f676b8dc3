"""A transaction as the engine sees it: the tables over one set of statements."""

from __future__ import annotations

from tidemill.domain.identifiers import Moment
from tidemill.stores.statements import Statements
from tidemill.stores.tables.definitions import Definitions
from tidemill.stores.tables.history import History
from tidemill.stores.tables.identity import StoreIdentity
from tidemill.stores.tables.outbox import Outbox
from tidemill.stores.tables.runs import Runs
from tidemill.stores.tables.secrets import StoreSecrets
from tidemill.stores.tables.sessions import Sessions
from tidemill.stores.tables.starts import Starts
from tidemill.stores.tables.tasks import Tasks


class StoreTransaction:
    """Implements ports.store.Transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self.runs = Runs(statements)
        self.tasks = Tasks(statements)
        self.sessions = Sessions(statements)
        self.starts = Starts(statements)
        self.definitions = Definitions(statements)
        self.history = History(statements)
        self.outbox = Outbox(statements)

    @property
    def identity(self) -> StoreIdentity:
        """Made when it is asked for: most transactions are not about it."""
        return StoreIdentity(self._statements)

    @property
    def secrets(self) -> StoreSecrets:
        """The same."""
        return StoreSecrets(self._statements)

    async def now(self) -> Moment:
        """The clock of the database, at this instant."""
        return int((await self._statements.fetch("now"))[0][0])
