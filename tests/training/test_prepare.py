"""What a training set must prove: no leak, no easy tell, terms that allow it, and rows that stay where they are."""

import hashlib
import json
import os
import random
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.accuracy.labeled import shared
from tasks.core.errors import DataError
from training import authored, prepare, recipe
from training.authored import Pair
from training.recipe import Data, Recipe

DATA = recipe.HERE / "data/authored"
SHINGLE = 8  # words in a row that two texts don't share by chance
TEXT = st.text(max_size=30)


def pair(premise="It rained all day.", hypothesis="It was wet.", label="entailment", group="g"):
    return Pair(premise, hypothesis, label, "made", "planted", group)


# Leaks ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["The Dam was  finished\nin 1936.", "the dam was finished in 1936.", " The dam was finished in 1936. "]
)
def test_a_planted_leak_is_found_whatever_its_spacing_and_case(text):
    measured = ["Something else.", "The dam was finished in 1936."]
    clean = [pair("The dam was finished in 1937.", "A dam was finished in 1936."), pair()]
    assert len(prepare.leaks(clean, measured)) == 0
    assert len(prepare.leaks([*clean, pair(premise=text)], measured)) == 1
    assert len(prepare.leaks([pair(hypothesis=text), *clean, pair(premise=text, hypothesis=text)], measured)) == 2


def test_a_leak_inside_a_longer_text_is_found():
    measured = " ".join(f"word{i}" for i in range(40))
    part = " ".join(measured.split()[7:30])
    assert len(prepare.leaks([pair(premise=f"A stranger's document. {part} And more.")], [measured])) == 1
    assert len(prepare.leaks([pair(premise=f"A stranger's document. {part[:60]} And more.")], [measured])) == 0


def test_what_is_measured_on_are_the_claims_answers_and_chunks_of_all_files_and_the_held_out_documents(tmp_path):
    (tmp_path / "deep").mkdir()
    rows = [
        {"claim": "A claim.", "chunks": ["A chunk.", "Another."], "label": "supported"},
        {"answer": "An answer.", "chunks": [{"chunk_id": "1", "text": "A chunk of a trace."}]},
    ]
    (tmp_path / "one.jsonl").write_text(json.dumps(rows[0]), encoding="utf-8")
    (tmp_path / "deep/two.jsonl").write_text(json.dumps(rows[1]) + "\n", encoding="utf-8")
    found = prepare.measured_texts([tmp_path])
    assert set(found) >= {"A claim.", "A chunk.", "Another.", "An answer.", "A chunk of a trace."}
    held = [d for d in authored.read(DATA) if authored.held_out(d)]
    assert {d.text for d in held} <= set(found)
    assert {c.hypothesis for d in held for c in d.claims} <= set(found)


# Shortcuts ------------------------------------------------------------------------------------------------------------


def claims(count, seed=0):
    """Claims of three drawn words each, a document of its own for each."""
    rng = random.Random(seed)
    words = [a + b + "er" for a in "bdfglmnprst" for b in ("a", "e", "i", "o", "u")]
    return [(f"{number:032x}", " ".join(rng.sample(words, 3))) for number in range(count)]


def test_nothing_is_reported_by_claims_that_stand_on_both_sides():
    # Each claim once entailed and once not, its words in the premise both times: whatever a model says of it, the two
    # are tied, and ties count one half.
    found = [
        pair(f"It says {c} here.", c, label, group) for group, c in claims(100) for label in ("entailment", "neutral")
    ]
    assert list(prepare.shortcuts(found).values()) == pytest.approx([0.5, 0.5, 0.5])


def test_claims_drawn_without_regard_to_their_label_show_next_to_nothing():
    rng = random.Random(1)
    found = [pair(f"It says {c} here.", c, rng.choice(["entailment", "neutral"]), group) for group, c in claims(600)]
    # Standard deviation of an area that tells nothing: sqrt((n + 1) / (12 n1 n0)), 0.024 for 300 and 300; four of them.
    assert abs(prepare.shortcuts(found)["claim_only"] - 0.5) < 0.1


def test_a_word_that_only_false_claims_have_shows_everything():
    found = [
        pair(
            f"It says {c} here.", f"{c} never" if i % 2 else f"{c} always", "neutral" if i % 2 else "entailment", group
        )
        for i, (group, c) in enumerate(claims(200))
    ]
    assert prepare.shortcuts(found)["claim_only"] > 0.99


@pytest.mark.parametrize(("entailed_shares", "area"), [(True, 1.0), (False, 0.0)])
def test_shared_words_show_everything_where_one_side_alone_has_them(entailed_shares, area):
    found = [
        pair(c if (label == "entailment") == entailed_shares else "Quite another matter.", c, label, group)
        for group, c in claims(60)
        for label in ("entailment", "not_entailment")
    ]
    assert prepare.shortcuts(found)["overlap_only"] == pytest.approx(area)


def test_longer_premises_of_one_label_show() -> None:
    found = [
        pair(f"It says {c} here{' and more' * (label == 'entailment')}.", c, label, group)
        for group, c in claims(60)
        for label in ("entailment", "neutral")
    ]
    assert prepare.shortcuts(found)["length_only"] == 1


def test_claims_of_one_document_never_show_of_each_other():
    # Two documents' worth of wording, each with one label: a model that had seen a document would know its label.
    rng = random.Random(2)
    found = []
    for group, c in claims(40, seed=5):
        label = rng.choice(["entailment", "neutral"])
        found += [pair("Something to read.", f"{c} {group} part {i}", label, group) for i in range(8)]
    rng.shuffle(found)  # as in a training set, where documents do not lie together
    # The name of the document tells the label without fail, but documents are never cut in two.
    # 40 of them: standard deviation 0.09, three of them.
    assert abs(prepare.shortcuts(found)["claim_only"] - 0.5) < 0.28


# Order and samples ----------------------------------------------------------------------------------------------------

ROWS = st.lists(
    st.builds(pair, TEXT, TEXT, st.sampled_from(["entailment", "neutral"])),
    max_size=30,
    unique_by=lambda p: (p.premise, p.hypothesis),
)


@given(ROWS, st.data(), st.integers(0, 30), st.integers(0, 9))
def test_a_sample_moves_nothing_when_rows_are_added(rows, data, most, seed):
    old = data.draw(st.lists(st.sampled_from(rows), unique=True)) if rows else []
    before, after = (prepare._sample(r, most, seed) for r in (old, rows))
    assert len(before) == min(most, len(old))
    # The old ones that stay are the first of the earlier sample, in the same order.
    kept = [p for p in after if p in old]
    assert kept == before[: len(kept)]
    # Only a new row takes an old one's place.
    assert len(kept) >= len(before) - sum(p not in old for p in after)


@given(ROWS, st.randoms(), st.integers(0, 30))
def test_a_sample_does_not_depend_on_the_order_of_the_rows(rows, rng, most):
    shuffled = list(rows)
    rng.shuffle(shuffled)
    assert prepare._sample(rows, most, 0) == prepare._sample(shuffled, most, 0)


def test_a_sample_is_drawn_evenly_and_anew_with_another_seed():
    rows = [pair(f"Premise {i}.") for i in range(2000)]
    found = [int(p.premise.split()[1][:-1]) for p in prepare._sample(rows, 500, 0)]
    assert abs(np.mean(found) - 999.5) < 4 * 577 / 500**0.5  # uniform on 0..1999: standard deviation 577
    assert found != [int(p.premise.split()[1][:-1]) for p in prepare._sample(rows, 500, 1)]


@given(st.lists(st.builds(pair, TEXT, TEXT), max_size=8))
def test_pairs_are_read_as_they_were_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    rows = [*rows, pair("A line\nand another\u2028and one more\x85\r\n.")]
    prepare.write(rows, path)
    assert prepare.read(path) == rows


def test_the_summary_counts_by_source_and_label():
    rows = [pair(), pair(label="neutral"), pair(), Pair("a", "b", "neutral", "begin", "labeled", "g")]
    assert prepare.summary(rows) == {"begin": {"neutral": 1}, "made": {"entailment": 2, "neutral": 1}}


# Whole training sets --------------------------------------------------------------------------------------------------


def planted(folder, name, count):
    folder.mkdir(exist_ok=True)
    rows = [
        {
            "premise": f"The {name} of case {i} was opened in the year {1500 + i}.",
            "hypothesis": f"Case {i} is old.",
            "label": "entailment",
        }
        for i in range(count)
    ]
    (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    folder = planted(tmp_path_factory.mktemp("sets"), "begin", 40)
    (folder / "q2.jsonl").write_text(
        json.dumps({"premise": "Too short.", "hypothesis": "x", "label": "neutral"}), encoding="utf-8"
    )
    return folder


WORDS = ("red", "green", "blue", "white", "black")


@pytest.fixture(scope="module")
def built(sets):
    """Every kind of pair, of all of the repository's documents. Edits are made of the same text in both forms."""
    data = {"begin": 30, "q2": 5}
    edited = Data(form="documents", sets=data, perturbed=1000, near_misses=0.3)
    return {d.form: prepare.build(Recipe(data=d), [sets]) for d in (edited, Data(form="sentences", sets=data))}


@pytest.fixture(scope="module")
def documents():
    return authored.read(DATA)


@pytest.mark.parametrize(("share", "least", "most"), [(0, 0, 0), (0.5, 60, 140), (1, 200, 200)])
def test_a_share_of_the_premises_is_cut_to_the_nearest_sentences(tmp_path, share, least, most):
    # 200 premises of five sentences, of which one is the claim. By halves 100 are cut, with a deviation of 7.
    lines = [" ".join(f"Item {i} of list {n} is {word}." for i, word in enumerate(WORDS)) for n in range(200)]
    rows = [{"premise": x, "hypothesis": x.split(". ")[1] + ".", "label": "entailment"} for x in lines]
    (tmp_path / "begin.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    data = Data(authored=0, natural=0, nearest=share, sets={"begin": 200})
    cut = [p for p in prepare.build(Recipe(data=data), [tmp_path]) if p.premise not in lines]
    assert least <= len(cut) <= most
    assert all(p.premise.count(".") == 3 and p.hypothesis in p.premise for p in cut)


@pytest.mark.parametrize("name", ["healthver", "climate_fever", "covidfact", "unheard_of"])
def test_a_set_without_terms_is_refused_by_name(tmp_path, name):
    planted(tmp_path, name, 3)
    with pytest.raises(DataError) as caught:
        prepare.build(Recipe(data=Data(authored=0, natural=0, sets={name: 3})), [tmp_path])
    licence = "unknown" if name == "unheard_of" else "none stated"
    assert f"'{name}' may not enter shipped weights (licence: {licence}). Use: begin," in str(caught.value)


def test_a_set_that_is_not_there_is_named_with_its_place(tmp_path):
    with pytest.raises(DataError) as caught:
        prepare.build(Recipe(data=Data(authored=0, natural=0, sets={"begin": 3})), [tmp_path])
    assert f"begin.jsonl is not in {tmp_path}" in str(caught.value)
    assert "--sets" in str(caught.value)


def test_no_text_of_a_held_out_document_is_in_a_training_pair(built, documents):
    held = [d for d in documents if authored.held_out(d)]
    taught = {run for d in documents if not authored.held_out(d) for text in texts(d) for run in runs(text)}
    # Each sentence and claim by its first words; what training documents happen to say too is no leak.
    first = {run for d in held for text in (*d.sentences, *texts(d)) for run in list(runs(text))[:1]} - taught
    assert len(first) > 1000
    groups = {d.group for d in held}
    for pairs in built.values():
        assert not [p.group for p in pairs if p.group in groups]
        found = {p.premise for p in pairs} | {p.hypothesis for p in pairs}
        assert not any(first.intersection(runs(text)) for text in found)


def texts(document):
    return [document.text, *(t for c in document.claims for t in (c.text, c.remedy) if t)]


def runs(text):
    """All runs of so many words, in order."""
    words = text.casefold().split()
    return zip(*(words[i:] for i in range(SHINGLE)), strict=False)


def test_a_training_set_has_no_leak_into_the_held_out_documents(built, tmp_path):
    measured = prepare.measured_texts([tmp_path])
    for pairs in built.values():
        assert len(prepare.leaks(pairs, measured)) == 0


def test_a_training_set_has_no_leak_into_the_sets_at_hand(built):
    dev = shared() / "nli/dev"
    if not dev.exists():
        pytest.skip(f"{dev} is not there: labeled sets of others are no part of this repository")
    assert len(prepare.leaks(built["documents"], prepare.measured_texts([dev]))) == 0


def test_no_pair_stands_with_two_labels(built):
    for pairs in built.values():
        reported = {}
        for p in pairs:
            reported.setdefault((p.premise, p.hypothesis), set()).add(p.label)
        # "neutral" says more than "not entailed" and is no contradiction of it.
        assert not [
            key
            for key, labels in reported.items()
            if len(labels - {"not_entailment"}) > 1 or labels >= {"entailment", "not_entailment"}
        ]


def test_every_premise_says_something(built):
    for pairs in built.values():
        assert min(len(p.premise.split()) for p in pairs) >= prepare.SHORTEST_PREMISE
        assert all(p.hypothesis.strip() for p in pairs)


def test_the_sets_give_no_more_than_the_recipe_asks_for(built):
    counts = prepare.summary(built["documents"])
    assert counts["begin"] == {"entailment": 30}
    assert "q2" not in counts  # its only premise has two words
    assert sum(counts["perturbed"].values()) == 1000
    assert set(counts) == {"authored", "natural", "begin", "perturbed"}
    assert set(prepare.summary(built["sentences"])) == {"authored", "natural", "begin"}


def test_rows_added_to_a_set_leave_the_others_where_they_are(built, sets, tmp_path):
    more = planted(tmp_path, "begin", 60)
    assert (more / "begin.jsonl").read_text().startswith((sets / "begin.jsonl").read_text())
    found = prepare.build(Recipe(data=Data(authored=0, natural=0, sets={"begin": 30})), [more])
    before = [p for p in built["documents"] if p.source == "begin"]
    kept = [p for p in found if p in before]
    assert kept == [p for p in before if p in found]
    assert 30 - len(kept) == sum(p not in before for p in found) < 30


def test_a_share_of_the_documents_is_a_part_of_a_larger_share(tmp_path, documents):
    groups = []
    for share in (0.2, 0.5):
        found = prepare.build(Recipe(data=Data(authored=share, natural=0)), [tmp_path])
        assert {p.source for p in found} == {"authored"}
        groups.append({p.group for p in found})
    count = sum(d.source == "authored" and not authored.held_out(d) for d in documents)
    assert groups[0] < groups[1]
    for share, found in zip((0.2, 0.5), groups, strict=True):
        assert abs(len(found) / count - share) < 4 * (share * (1 - share) / count) ** 0.5


def test_changed_documents_of_twins_are_left_out_and_nothing_else(tmp_path):
    every = prepare.build(Recipe(data=Data(twins=1)), [tmp_path])
    left = prepare.build(Recipe(data=Data(twins=1, changed=0)), [tmp_path])
    plain = [p for p in every if p.source != "twins" or p.kind in {"whole", "core"}]
    assert left == plain
    assert len(left) < len(every)
    names = Counter(p.twin for p in left if p.twin)
    assert set(names.values()) == {2}
    assert {p.source for p in left if p.twin} == {"twins"}


def test_without_context_the_claim_stands_alone(tmp_path):
    texts = {c.text for d in authored.read(DATA) for c in d.claims if c.context}
    made = prepare.build(Recipe(data=Data(twins=1, context=False)), [tmp_path])
    hypotheses = {p.hypothesis for p in made}
    assert hypotheses & texts
    assert not hypotheses & {c.hypothesis for d in authored.read(DATA) for c in d.claims if c.context}


def test_several_draws_are_what_the_seeds_one_by_one_would_draw(tmp_path):
    data = {"authored": 0, "natural": 0.1, "near_misses": 0.5}
    twice = prepare.build(Recipe(data=Data(draws=2, **data)), [tmp_path])
    # The documents are chosen by the recipe's seed, so only what is made of them may differ.
    used = {p.group for p in twice}
    once = prepare.build(Recipe(data=Data(**data)), [tmp_path])
    assert {p.group for p in once} == used
    assert not Counter(once) - Counter(twice)
    assert 1.5 * len(once) < len(twice)
    assert set(twice) != set(once)


HASH = """
import hashlib, sys
from pathlib import Path
from training import prepare
from training.recipe import Data, Recipe
pairs = prepare.build(Recipe(data=Data(authored=0, natural=0.2, sets={"begin": 30}, perturbed=50)), [Path(sys.argv[1])])
print(hashlib.sha256(repr(pairs).encode()).hexdigest())
"""


def test_the_same_recipe_gives_the_same_pairs_in_every_process(sets):
    here = prepare.build(Recipe(data=Data(authored=0, natural=0.2, sets={"begin": 30}, perturbed=50)), [sets])
    # Sets of strings have another order in there.
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": str(recipe.HERE.parent)}
    there = subprocess.check_output([sys.executable, "-c", HASH, str(sets)], env=environment, text=True, timeout=120)
    assert there.strip() == hashlib.sha256(repr(here).encode()).hexdigest()
