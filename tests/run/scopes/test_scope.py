"""Scopes: which traces are judged under a recipe, and that a wider scope later adds what is missing."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tasks.run.scopes import scope
from tasks.run.scopes.scope import ALL, Scope

IDS = st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=50)
SCOPES = st.builds(
    Scope,
    apps=st.sampled_from([(), ("a",), ("a", "b")]),
    without=st.sampled_from([(), ("c",)]),
    share=st.floats(0.01, 1),
)


def traces(ids: list[str], app: str = "a") -> pa.Table:
    return pa.table({"trace_id": pa.array(ids, pa.string()), "app": pa.repeat(app, len(ids))})


@given(ids=IDS, smaller=st.floats(0.01, 1), larger=st.floats(0.01, 1))
def test_a_larger_share_holds_the_smaller_one(ids: list[str], smaller: float, larger: float) -> None:
    smaller, larger = sorted((smaller, larger))
    inside = [Scope(share=smaller).covers(i, "a") for i in ids]
    assert all(Scope(share=larger).covers(i, "a") for i, was in zip(ids, inside, strict=True) if was)


def test_a_share_is_about_that_share() -> None:
    # 10,000 fair draws at 0.1: standard deviation 30, so that five of them are 150.
    assert abs(sum(Scope(share=0.1).covers(f"t{i}", "a") for i in range(10_000)) - 1_000) < 150


def test_applications_are_taken_in_or_left_out() -> None:
    assert Scope(apps=("a",)).covers("t", "a")
    assert not Scope(apps=("a",)).covers("t", "b")
    assert not Scope(without=("a",)).covers("t", "a")
    assert Scope(without=("a",)).covers("t", "b")


@given(st.lists(SCOPES, min_size=1, max_size=4))
def test_the_token_says_what_is_covered(scopes: list[Scope]) -> None:
    back = scope.parse(scope.token(scopes))
    assert set(back) == ({ALL} if ALL in scopes else set(scopes))
    assert scope.token(reversed(scopes)) == scope.token(scopes)


@given(ids=IDS, scopes=st.lists(SCOPES, min_size=1, max_size=4))
def test_several_scopes_cover_what_one_of_them_does(ids: list[str], scopes: list[Scope]) -> None:
    assert scope.mask(scopes, traces(ids)).to_pylist() == [any(s.covers(i, "a") for s in scopes) for i in ids]


def test_everything_has_no_token() -> None:
    assert scope.token([ALL]) == ""
    assert scope.parse("") == [ALL]


@given(mine=SCOPES, other=SCOPES, app=st.sampled_from("abcd"))
def test_what_is_left_without_another_scope(mine: Scope, other: Scope, app: str) -> None:
    left = mine.but(other)
    expected = mine.takes(app) and not other.takes(app)
    assert (left is not None and left.takes(app)) == expected
    assert left is None or left.share == mine.share


def test_nothing_is_left_without_all() -> None:
    assert Scope(share=0.1).but(ALL) is None
    assert Scope(apps=("a",)).but(Scope(apps=("a", "b"))) is None
    assert Scope(share=0.1).but(Scope(without=("a",))) == Scope(apps=("a",), share=0.1)
