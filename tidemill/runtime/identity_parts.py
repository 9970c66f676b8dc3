"""Identity of one process: its keys and threads, put together once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemill.api.authentication import BearerAuthenticator
from tidemill.domain.identity import Registration
from tidemill.engine.identity.bootstrap import prepare_bootstrap, signing_key
from tidemill.engine.identity.context import Identity, IdentityConfig
from tidemill.engine.identity.principals import Principals
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.ports.store import Store
from tidemill.runtime.setting_checks import SINGLE_USER
from tidemill.runtime.settings import Settings

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityParts:
    """What answers about identity; `close` it when nobody asks any more."""

    identity: Identity
    principals: Principals
    authenticator: BearerAuthenticator
    close: Callable[[], None]  # lets go of the threads


async def open_identity(
    store: Store, clock: Clock, entropy: Entropy, settings: Settings | None = None
) -> IdentityParts:
    """Identity over a store, with the signing key of the file given or the one kept there."""
    from tidemill.credentials.passwords import Argon2Passwords  # who needs none starts faster
    from tidemill.credentials.tokens import JwtSigner, read_key_file

    file = settings.signing_key_file if settings else None
    key = read_key_file(file) if file else await signing_key(store, entropy)
    signer = JwtSigner(key, clock, entropy)
    hasher = Argon2Passwords()
    mode = Registration(settings.registration) if settings else Registration.OFF
    identity = Identity(
        store=store,
        clock=clock,
        entropy=entropy,
        hasher=hasher,
        signer=signer,
        config=IdentityConfig(registration=mode),
    )
    principals = Principals(store, signer, clock)
    return IdentityParts(
        identity=identity,
        principals=principals,
        authenticator=BearerAuthenticator(principals),
        close=hasher.close,
    )


async def tell_how_to_begin(store: Store, entropy: Entropy, settings: Settings, tell: Tell) -> None:
    """While nobody administers the system, say how to become the one who does."""
    if settings.auth == SINGLE_USER:
        return
    given = settings.bootstrap_token
    token = await prepare_bootstrap(store, entropy, given)
    if token is None:
        return
    shown = "the token in TIDEMILL_BOOTSTRAP_TOKEN" if given else f"this token: {token}"
    tell(
        "there is no administrator yet: `tidemill login --bootstrap --server URL` (or "
        f"POST /v1/auth/bootstrap) makes one, with {shown}"
    )
