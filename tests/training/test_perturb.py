"""Edits of prose: what is entailed stands in the prose, what is changed really says something else."""

import random
import re
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from training import perturb
from training.authored import Claim, Document

PROSE = (
    "Marta Quell opened the mill in 1891 with 14 looms and a loan of 2,500 crowns. "
    "In the spring of 1903, the owners were sued by Jonas Vey over the water of the upper pond. "
    "The court, which sat for 11 days in Harnby, has given the water to the town for good. "
    "Prices rose by 3.5 percent in the year after (the last one before the war) in every shop. "
    "The mill is owned by the grandchildren of Marta Quell and it can be visited in summer."
)
WORDS = st.sampled_from(
    ["In", "Before", "the", "dam", "1936", "2,500", "3.5", "is", "was", "can", "can't", "not", "Anna Berg", "Otto Lind",
     "(as told)", ", which holds water,", ",", ".", "?", "\n", "U.S.", "Ünal", "日本。", "e.g.", "x" * 90]
)  # fmt: skip
ALIKE = st.lists(WORDS, max_size=80).map(" ".join)
VALUES = st.one_of(
    st.integers(0, 10**9).map(str),
    st.integers(1000, 10**9).map("{:,}".format),
    st.decimals(0, 10**6, places=2).map(str),
    st.decimals(0, 100, places=1).map(str),
)


def within(small, large):
    """Whether the letters of `small` stand in `large` in that order, case aside."""
    rest = iter(large.upper())
    return all(letter in rest for letter in small.upper())


@settings(deadline=None)
@given(st.lists(st.one_of(st.text(max_size=300), ALIKE), max_size=3), st.integers(0, 99))
@example(["a", "", " "], 0)
@example([f"There are {'9' * 400}.5 of them in all of these eight. One. Two."], 0)
def test_any_text_gives_pairs_of_its_own_sentences_or_none(premises, seed):
    found = list(perturb.pairs(premises, seed))
    for pair in found:
        assert pair.source == perturb.SOURCE
        assert pair.hypothesis.strip()
        assert pair.premise in premises if pair.kind != "gone" else within(pair.premise.split()[0], "".join(premises))
        if pair.kind in {"shortened", "gone"}:
            assert any(within(pair.hypothesis, p) for p in premises)
    labels = Counter(p.label == "entailment" for p in found)
    assert labels[True] == labels[False]  # each sentence once entailed, once not


@settings(deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=40).map(" ".join), st.integers(0, 99))
def test_a_shortened_sentence_is_a_part_of_it(sentence, seed):
    assert within(perturb.shortened(sentence, random.Random(seed)), sentence)


@pytest.mark.parametrize(
    ("sentence", "short"),
    [
        ("The well (dug in 1804) is dry.", "The well is dry."),
        ("In the year of the flood, the dam broke.", "The dam broke."),
        ("According to Berg, it held.", "It held."),
        ("Nothing here can be left out.", "Nothing here can be left out."),
    ],
)
def test_asides_and_openings_are_left_out_in_half_of_the_cases(sentence, short):
    found = Counter(perturb.shortened(sentence, random.Random(seed)) for seed in range(400))
    assert set(found) == {sentence, short}
    if short != sentence:
        assert 150 < found[short] < 250  # five standard deviations: sqrt(400 * 0.25) = 10


def number(text):
    return Decimal(text.replace(",", ""))


@settings(deadline=None)
@given(VALUES, st.lists(VALUES, max_size=4), st.integers(0, 99))
@example("1,000", ["1.000"], 0)
@example("0.04", [], 0)
@example("2,500", ["02500"], 0)
def test_a_changed_number_is_another_number(value, others, seed):
    sentence = f"It has {value} rows in total there."
    premise = " ".join([sentence, *(f"And {other} more." for other in others)])
    made = perturb._number(sentence, premise, random.Random(seed))
    if made is None:
        # 0.1 times 1.2 is 0.1 again in one decimal, and another number of the text may have the same value.
        assert "." in value or number(value) in map(number, others)
        return
    claim, label, kind = made
    new = re.fullmatch(r"It has (.+) rows in total there\.", claim)[1]
    assert number(new) != number(value)
    assert (label, kind) == ("not_entailment", "number")


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_one_thing_is_changed_and_the_rest_stays(seed):
    rng = random.Random(seed)
    sentence = rng.choice(PROSE.split(". "))
    claim, label, kind = perturb.changed(sentence, PROSE, rng)
    old, new = sentence.split(), claim.split()
    if kind == "negation":
        at = new.index("not")
        assert new[:at] + new[at + 1 :] == old
        assert re.search(r"\b(is|were|has|can) not\b", claim)
        assert label == "contradiction"
        return
    assert label == "not_entailment"
    assert len(new) == len(old)
    moved = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    if kind == "number":
        assert len(moved) == 1
    else:
        assert kind == "name"  # two words, all of them from another name of the prose
        assert all(new[i].strip(".") in {"Marta", "Quell", "Jonas", "Vey"} for i in moved)


def test_a_sentence_without_number_name_or_verb_of_being_is_left_alone():
    assert perturb.changed("They sing all day.", "They sing all day. Nobody minds.", random.Random(0)) is None
    # A negated sentence is not negated twice.
    assert perturb.changed("It is not far and was never near.", "It.", random.Random(0)) is None


def test_the_pairs_of_a_text():
    found = [p for seed in range(30) for p in perturb.pairs([PROSE], seed)]
    assert len(found) == 30 * 4  # two sentences, each entailed and not
    assert {p.kind for p in found} >= {"shortened", "number", "name", "negation"}
    assert {p.premise for p in found} == {PROSE}  # each of these sentences has something to change
    assert len({p.group for p in found}) == 1
    assert all(p.hypothesis not in PROSE for p in found if p.label != "entailment")


def test_a_sentence_with_nothing_to_change_stands_beside_the_rest_of_its_text():
    plain = "They sing the same old song all day long."
    text = f"Nobody minds at all. {plain} Nobody ever listens."
    made = [p for seed in range(10) for p in perturb.pairs([text], seed) if p.hypothesis == plain]
    gone = {p.premise for p in made if p.kind == "gone"}
    assert gone == {"Nobody minds at all. Nobody ever listens."}
    assert {p.label for p in made if p.kind == "gone"} == {"not_entailment"}
    assert {p.premise for p in made if p.kind == "shortened"} == {text}


@pytest.mark.parametrize(
    "premise", ["", "One sentence that is long enough to stand alone here.", "One. Two.", "A. B. C. D."]
)
def test_texts_that_are_too_short_give_none(premise):
    assert list(perturb.pairs([premise], 0)) == []


def test_a_texts_pairs_depend_on_the_text_and_the_seed_alone():
    other = PROSE.replace("Marta", "Greta")
    assert [p for p in perturb.pairs([other, PROSE], 3) if p.premise == PROSE] == list(perturb.pairs([PROSE], 3))
    assert list(perturb.pairs([PROSE], 3)) != list(perturb.pairs([PROSE], 4))


# Near misses ----------------------------------------------------------------------------------------------------------

CLAIMS = (
    Claim("Marta Quell had 14 looms.", "S", (0,), "paraphrase", None),
    Claim("Jonas Vey has sued in 1904.", "C", (1,), "time", "Jonas Vey has sued in 1903."),
    Claim("The court of Harnby was paid 11 crowns.", "U", (), "reason", "The court was paid by the town of Harnby."),
    Claim("The mill is open in summer and can be rented.", "P", (4,), "detail", None),
    Claim("They all sing.", "U", (), "reason", None),  # nothing of it can be changed
)
MILL = Document(tuple(re.split(r"(?<=\.) (?=[A-Z])", PROSE)), CLAIMS, "natural", "7" * 32)


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_a_near_miss_is_one_edit_away_from_being_entailed(seed):
    claims = {c.text: c for c in CLAIMS}
    found = list(perturb.near_misses([MILL], seed, 1.0))
    assert len(found) == 4 + 2  # each claim that can be changed, and two sentences of the document
    for pair in found:
        kind = pair.kind.removeprefix("near_")
        assert pair.label == ("contradiction" if kind == "negation" else "not_entailment")
        assert (pair.source, pair.group) == ("natural", MILL.group)
        assert pair.hypothesis not in pair.premise
        claim = claims.get(pair.hypothesis)
        if claim is None:
            # A supported claim, or a sentence of the document, that was changed itself.
            assert pair.premise == PROSE
            assert any(edits(output, pair.hypothesis, kind) for output in (*MILL.sentences, CLAIMS[0].text))
            continue
        # A false one, put in with the change: the document around it is whole but for what the claim contradicts.
        assert claim.label != "S"
        gone = [s for s in MILL.sentences if s not in pair.premise]
        assert gone == ([MILL.sentences[1]] if claim.label == "C" else [])
        rest = pair.premise
        for sentence in MILL.sentences:
            rest = rest.replace(sentence, "")
        assert edits(claim.text, " ".join(rest.split()), kind)


def edits(before, after, kind):
    """Whether one text is the other with so much changed."""
    old, new = before.split(), after.split()
    if kind == "negation":
        return len(new) == len(old) + 1 and any(new[:i] + new[i + 1 :] == old for i, w in enumerate(new) if w == "not")
    moved = sum(a != b for a, b in zip(old, new, strict=False))
    return len(new) == len(old) and 1 <= moved <= (1 if kind == "number" else 2)


def test_a_share_of_the_near_misses_is_a_part_of_a_larger_share():
    few, half, every = (
        [p for seed in range(100) for p in perturb.near_misses([MILL], seed, share)] for share in (0.0, 0.5, 1.0)
    )
    assert few == []
    assert len(every) == 600
    assert set(half) <= set(every)
    assert 240 < len(half) < 360  # five standard deviations: sqrt(600 * 0.25) = 12


def test_a_documents_near_misses_do_not_depend_on_other_documents():
    other = Document(("It is the 3rd of May in all of these places.", "So it was."), CLAIMS[:1], "authored", "8" * 32)
    found = [p for p in perturb.near_misses([other, MILL], 1, 0.7) if p.group == MILL.group]
    assert found == list(perturb.near_misses([MILL], 1, 0.7))
