"""What workers are started with."""

from __future__ import annotations

import pytest

from tidemill.client.choosing import KEY_VARIABLE
from tidemill.runtime.offering import API_KEY, worker_environ

PRIVATE = (
    KEY_VARIABLE,
    "TIDEMILL_TOKEN",
    "TIDEMILL_TOKEN_FILE",
    "TIDEMILL_BOOTSTRAP_TOKEN",
    "TIDEMILL_SIGNING_KEY_FILE",
    "TIDEMILL_SECRETS_KEY_FILE",
    "TIDEMILL_STORE",
    "TIDEMILL_BUS",
)


@pytest.mark.parametrize("variable", PRIVATE)
def test_user_code_sees_no_credential_of_the_process(variable: str) -> None:
    kept = worker_environ({variable: "hidden", "PATH": "/bin"})

    assert "hidden" not in kept.values()
    assert kept["PATH"] == "/bin"


def test_the_key_that_is_hidden_is_the_one_that_clients_read() -> None:
    assert API_KEY == KEY_VARIABLE
