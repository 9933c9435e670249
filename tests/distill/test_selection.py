"""A training set of examples: every example is kept or counted, no question is on both sides, no answer outweighs others."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tasks.distill.selection import Candidate, choose, split_of

SHARES = st.floats(0, 0.9)
EXAMPLES = st.lists(
    st.tuples(st.sampled_from(["plain", "explained"]), st.integers(0, 60), st.integers(0, 25), st.sampled_from("abc")),
    max_size=120,
).map(
    lambda rows: [
        Candidate(form, f"k{key}", f"q{question}", answer, "{}", place)
        for place, (form, key, question, answer) in enumerate(rows)
    ]
)
BALANCE = st.none() | st.floats(1, 4)


@given(EXAMPLES, SHARES, BALANCE, st.none() | st.integers(1, 130))
def test_every_example_is_kept_or_counted_by_its_form(examples, share, balance, most):
    chosen = choose(examples, share, balance, most)
    kept = Counter(c.form for split in chosen.examples.values() for c in split)
    gone = {form: reasons.total() for form, reasons in chosen.left_out.items()}
    assert Counter(c.form for c in examples) == kept + Counter(gone)
    assert set().union(*chosen.left_out.values()) <= {"repeated", "balance", "max"}
    assert most is None or kept.total() <= most
    assert kept.total() == sum(map(len, chosen.examples.values()))


@given(EXAMPLES, SHARES, BALANCE)
def test_no_question_is_on_both_sides_and_more_examples_move_none(examples, share, balance):
    chosen = choose(examples, share, balance, None)
    train, valid = ({c.question for c in chosen.examples[split]} for split in ("train", "valid"))
    assert not train & valid
    assert all(split_of(q, share) == "valid" for q in valid)  # by the question alone


@given(EXAMPLES, SHARES, st.floats(1, 4))
def test_no_answer_outweighs_the_rarest_by_more_than_was_asked(examples, share, balance):
    chosen = choose(examples, share, balance, None)
    whole = choose(examples, share, None, None)
    for split, its in chosen.examples.items():
        for form in {c.form for c in its}:
            counts = Counter(c.answer for c in its if c.form == form)
            before = Counter(c.answer for c in whole.examples[split] if c.form == form)
            assert max(counts.values()) <= balance * min(counts.values())
            assert set(counts) == set(before)  # no answer is lost,
            assert min(counts.values()) == min(before.values())  # and none of the rarest


@given(EXAMPLES, SHARES, BALANCE, st.none() | st.integers(1, 130), st.randoms(use_true_random=False))
def test_the_same_examples_make_the_same_set_in_any_order(examples, share, balance, most, chance):
    distinct = list(
        {(c.form, c.key): c for c in examples}.values()
    )  # of equal ones the first counts: there is an order
    other = list(distinct)
    chance.shuffle(other)
    assert choose(distinct, share, balance, most) == choose(other, share, balance, most)


def test_a_limit_is_shared_by_splits_looks_and_answers():
    examples = [Candidate(form, f"{n}", f"q{n}", "ab"[n % 2], "{}", n) for form in ("x", "y") for n in range(400)]
    chosen = choose(examples, 0.25, 1, 80)
    assert {split: len(its) for split, its in chosen.examples.items()} == {"train": 60, "valid": 20}
    of = Counter((c.form, c.answer) for c in chosen.examples["train"])
    assert set(of.values()) == {15}


def test_about_the_share_asked_for_is_held_out():
    held = sum(split_of(f"question {n}", 0.1) == "valid" for n in range(10_000))
    assert 850 < held < 1150  # 5 standard deviations of 30
