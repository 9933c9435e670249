"""Keys: stable, free of collisions between neighbors, and the same however they are computed."""

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core import keys

# Few letters and the bytes that length prefixes are made of, so that a weaker encoding would collide soon.
PART = st.text("ab\0\1", max_size=4) | st.binary(max_size=3) | st.integers(0, 12)


def as_bytes(part: str | bytes | int) -> bytes:
    return part if isinstance(part, bytes) else str(part).encode()


@given(st.lists(PART, max_size=4), st.lists(PART, max_size=4))
def test_two_lists_of_parts_share_a_key_only_if_they_are_equal(one: list, other: list) -> None:
    assert (keys.key(*one) == keys.key(*other)) == ([*map(as_bytes, one)] == [*map(as_bytes, other)])


def test_a_text_may_not_move_to_its_neighbor() -> None:
    assert (
        len({keys.key("ab", "c"), keys.key("a", "bc"), keys.key("abc"), keys.key("", "abc"), keys.key("abc", "")}) == 5
    )


def test_the_recipe_of_a_key_never_changes() -> None:
    # BLAKE2b of 128 bits over each part's UTF-8 bytes behind their number as 8 bytes, little end first
    text = (5).to_bytes(8, "little") + "tée!".encode() + (1).to_bytes(8, "little") + b"7"
    assert keys.key("tée!", 7) == hashlib.blake2b(text, digest_size=16).hexdigest()
    # and what that gave on the day the format was fixed: verdicts paid for under such keys must be found again
    assert keys.key("tée!", 7, size=16) == hashlib.blake2b(text, digest_size=8).hexdigest()
    assert keys.claim_id("t", "v", 3) == keys.key("t", "v", 3)


@pytest.mark.parametrize("size", [16, 32])
def test_a_key_is_lower_case_hexadecimal_of_its_size(size: int) -> None:
    found = keys.key("x", size=size)
    assert len(found) == size
    assert set(found) <= set("0123456789abcdef")


@given(st.text(max_size=20), st.lists(st.text(max_size=8), max_size=4))
def test_reading_the_premise_once_changes_no_key(premise: str, hypotheses: list[str]) -> None:
    assert list(keys.request_keys([premise], hypotheses)) == [keys.request_key(premise, h) for h in hypotheses]
    assert [keys.request_key(premise, h) for h in hypotheses] == [keys.key(premise, h) for h in hypotheses]


def test_half_a_surrogate_pair_has_a_key() -> None:
    assert keys.key("\ud800") != keys.key("\udc00")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=6,
)


def turned(value: object) -> object:
    """The same value, every mapping written in the opposite order."""
    if isinstance(value, dict):
        return {k: turned(v) for k, v in reversed(value.items())}
    return [turned(v) for v in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text("abc", max_size=2), JSON, max_size=4))
def test_a_version_does_not_depend_on_the_order_of_keys(value: dict[str, object]) -> None:
    assert keys.version(value) == keys.version(turned(value))  # type: ignore[arg-type]


@given(JSON, JSON)
def test_two_values_share_a_version_only_if_they_are_equal(one: object, other: object) -> None:
    same = msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
    assert (keys.version([one]) == keys.version([other])) == same
