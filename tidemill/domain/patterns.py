"""Forms that texts must have, and how each is told to people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tidemill.domain import identity_rules
from tidemill.domain.workflow import LABEL_NAME_PATTERN, LABEL_VALUE_PATTERN

KEY_PATTERN = r"^[ -~]+$"
LABEL_FILTER_PATTERN = r"^[^=]{1,63}=[^=]{0,63}$"
EVENT_ID_PATTERN = r"^\d{1,18}(\.\d{1,9})?$"
ACTION_PATTERN = r"^[a-z_.]+$"
ACTOR_PATTERN = r"^[0-9A-Za-z-]+$"
EMAIL_PATTERN = f"^{identity_rules.EMAIL_PATTERN}$"
PERSON_NAME_PATTERN = f"^{identity_rules.NAME_PATTERN}$"
NAMESPACE_PATTERN = f"^{identity_rules.NAMESPACE_PATTERN}$"

PATTERN_WORDS: Mapping[str, str] = MappingProxyType(
    {
        KEY_PATTERN: "printable ASCII characters",
        LABEL_FILTER_PATTERN: "name=value",
        EVENT_ID_PATTERN: "an event id such as 12.0",
        ACTION_PATTERN: "an action such as run.cancel",
        ACTOR_PATTERN: "the id of an account",
        EMAIL_PATTERN: "an e-mail address: name@host",
        PERSON_NAME_PATTERN: "a line without control characters, and no spaces at its ends",
        NAMESPACE_PATTERN: "1 to 63 of a-z, 0-9 and -, neither beginning nor ending with -",
        LABEL_NAME_PATTERN: "letters a-z and A-Z, digits, '.', '_', '/' and '-', "
        "beginning with a letter or a digit",
        LABEL_VALUE_PATTERN: "letters a-z and A-Z, digits, '.', '_' and '-'",
    }
)
"""What a text must be; patterns of users are not in it, and told as they wrote them."""
