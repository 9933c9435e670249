"""A training set of lessons: every lesson is kept or counted, no question is on both sides, no answer outweighs others."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tasks.distill.selection import Candidate, choose, split_of

SHARES = st.floats(0, 0.9)
LESSONS = st.lists(
    st.tuples(st.sampled_from(["plain", "explained"]), st.integers(0, 60), st.integers(0, 25), st.sampled_from("abc")),
    max_size=120,
).map(
    lambda rows: [
        Candidate(look, f"k{key}", f"q{question}", answer, "{}", place)
        for place, (look, key, question, answer) in enumerate(rows)
    ]
)
BALANCE = st.none() | st.floats(1, 4)


@given(LESSONS, SHARES, BALANCE, st.none() | st.integers(1, 130))
def test_every_lesson_is_kept_or_counted_by_its_look(lessons, share, balance, most):
    chosen = choose(lessons, share, balance, most)
    kept = Counter(c.look for split in chosen.lessons.values() for c in split)
    gone = {look: reasons.total() for look, reasons in chosen.left_out.items()}
    assert Counter(c.look for c in lessons) == kept + Counter(gone)
    assert set().union(*chosen.left_out.values()) <= {"repeated", "balance", "max"}
    assert most is None or kept.total() <= most
    assert kept.total() == sum(map(len, chosen.lessons.values()))


@given(LESSONS, SHARES, BALANCE)
def test_no_question_is_on_both_sides_and_more_lessons_move_none(lessons, share, balance):
    chosen = choose(lessons, share, balance, None)
    train, valid = ({c.question for c in chosen.lessons[split]} for split in ("train", "valid"))
    assert not train & valid
    assert all(split_of(q, share) == "valid" for q in valid)  # by the question alone


@given(LESSONS, SHARES, st.floats(1, 4))
def test_no_answer_outweighs_the_rarest_by_more_than_was_asked(lessons, share, balance):
    chosen = choose(lessons, share, balance, None)
    whole = choose(lessons, share, None, None)
    for split, its in chosen.lessons.items():
        for look in {c.look for c in its}:
            counts = Counter(c.answer for c in its if c.look == look)
            before = Counter(c.answer for c in whole.lessons[split] if c.look == look)
            assert max(counts.values()) <= balance * min(counts.values())
            assert set(counts) == set(before)  # no answer is lost,
            assert min(counts.values()) == min(before.values())  # and none of the rarest


@given(LESSONS, SHARES, BALANCE, st.none() | st.integers(1, 130), st.randoms(use_true_random=False))
def test_the_same_lessons_make_the_same_set_in_any_order(lessons, share, balance, most, chance):
    distinct = list({(c.look, c.key): c for c in lessons}.values())  # of equal ones the first counts: there is an order
    other = list(distinct)
    chance.shuffle(other)
    assert choose(distinct, share, balance, most) == choose(other, share, balance, most)


def test_a_limit_is_shared_by_splits_looks_and_answers():
    lessons = [Candidate(look, f"{n}", f"q{n}", "ab"[n % 2], "{}", n) for look in ("x", "y") for n in range(400)]
    chosen = choose(lessons, 0.25, 1, 80)
    assert {split: len(its) for split, its in chosen.lessons.items()} == {"train": 60, "valid": 20}
    of = Counter((c.look, c.answer) for c in chosen.lessons["train"])
    assert set(of.values()) == {15}


def test_about_the_share_asked_for_is_held_out():
    held = sum(split_of(f"question {n}", 0.1) == "valid" for n in range(10_000))
    assert 850 < held < 1150  # 5 standard deviations of 30
