"""Masking: no form of a value gets through, wherever a text is cut."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.domain.masking import MASK, Masking

SECRET = 'c4n4ry/pass word+7"q'


def forms(value: str) -> list[str]:
    """How a value may be written."""
    data = value.encode()
    return [
        value,
        base64.b64encode(data).decode(),
        base64.urlsafe_b64encode(data).decode(),
        quote(value, safe=""),
        json.dumps(value)[1:-1],
    ]


@pytest.mark.parametrize("form", forms(SECRET))
def test_every_form_is_masked(form: str) -> None:
    masked = Masking([SECRET]).mask(f"before {form} after")

    assert masked.startswith("before ***")
    assert masked.endswith(" after")
    assert form not in masked


@pytest.mark.parametrize("user", ["a", "ab", "abc"])
def test_a_value_in_the_middle_of_base64_is_masked(user: str) -> None:
    header = base64.b64encode(f"{user}:{SECRET}:x".encode()).decode()

    masked = Masking([SECRET]).mask(header)

    assert MASK in masked
    assert len(masked) < len(header) - len(SECRET)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([*forms(SECRET), "x", "c4n4", "a longer word ", "\n"]), max_size=8),
    st.lists(st.integers(1, 30), max_size=60),
)
def test_whatever_the_pieces_nothing_of_it_gets_through(words: list[str], cuts: list[int]) -> None:
    text, masking, shown = "".join(words), Masking([SECRET]), ""

    for cut in cuts:
        shown += masking.feed(text[:cut])
        text = text[cut:]
    shown += masking.feed(text) + masking.flush()

    assert not any(form in shown for form in forms(SECRET))


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="abc4n\n", max_size=40), st.integers(0, 40))
def test_a_text_without_a_value_stays_as_it_is(text: str, cut: int) -> None:
    masking = Masking(["zzzz-secret"])

    assert masking.feed(text[:cut]) + masking.feed(text[cut:]) + masking.flush() == text


def test_text_that_cannot_be_a_value_is_not_held_back() -> None:
    masking = Masking([SECRET])

    assert masking.feed("50 % done\n") == "50 % done\n"
    assert masking.feed("key: c4n") == "key: "
    assert masking.feed("t\n") == "c4nt\n"


def test_of_two_values_with_the_same_beginning_the_longer_is_masked_whole() -> None:
    masking = Masking(["pass", "password123"])

    shown = masking.feed("pass") + masking.feed("word123!") + masking.flush()

    assert shown == "***!"


def test_a_piece_at_the_end_of_a_cut_text_is_masked() -> None:
    masking = Masking(["correct-horse"])

    assert masking.mask("…ct-horse was refused, not correct-h") == "…ct-horse was refused, not ***"
    assert masking.mask("ct-horse was refused") == "*** was refused"


def test_the_lines_of_a_key_are_masked_one_by_one() -> None:
    masking = Masking(["-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n"])

    assert masking.mask("  MIIEvQIBADANBg\n") == "  ***\n"


def test_json_stays_json() -> None:
    masking = Masking([SECRET, "12345678"])
    document = {"a": [SECRET, 12345678, None, True], SECRET: {"b": f"x{SECRET}"}}

    masked = json.loads(masking.mask_json(json.dumps(document).encode()))

    assert masked == {"a": [MASK, MASK, None, True], MASK: {"b": f"x{MASK}"}}


def test_a_value_too_short_for_a_secret_is_left() -> None:
    assert Masking(["abc"]).mask("abc") == "abc"


def test_without_values_every_text_passes_as_it_is() -> None:
    masking = Masking()

    shown = masking.feed("whatever ") + masking.mask("comes") + masking.flush()

    assert (shown, bool(masking), bool(Masking([SECRET]))) == ("whatever comes", False, True)


def test_true_false_and_null_show_nothing() -> None:
    document = json.dumps({"shown": SECRET, "kept": [True, False, None, 1.5]}).encode()

    masked = json.loads(Masking([SECRET]).mask_json(document))

    assert masked == {"shown": MASK, "kept": [True, False, None, 1.5]}


def test_a_document_that_shows_nothing_keeps_its_bytes() -> None:
    assert Masking([SECRET]).mask_json(b'{ "a":1 }') == b'{ "a":1 }'
