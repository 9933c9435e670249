"""Labeled sets of others: read as they lie, grouped by premise, known by name and terms."""

import json

import pytest

from bench.accuracy.labeled import shared
from training import sources
from training.authored import Pair

ROWS = [
    {"premise": "It rained.", "hypothesis": "It was wet.", "label": "entailment", "source": "x"},
    {"premise": "It rained.", "hypothesis": "It was dry.", "label": "contradiction", "source": "x"},
    {"premise": "It snowed.", "hypothesis": "It was late.", "label": "not_entailment", "source": "x"},
]


def write(folder, name, rows):
    (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(r) for r in rows), encoding="utf-8")


def test_pairs_are_those_of_the_named_sets_in_order(tmp_path):
    write(tmp_path, "first", ROWS[:2])
    write(tmp_path, "second", ROWS[2:])
    write(tmp_path, "third", ROWS)
    found = list(sources.read([tmp_path], ["second", "first"]))
    assert [(p.premise, p.hypothesis, p.label, p.source, p.kind) for p in found] == [
        ("It snowed.", "It was late.", "not_entailment", "second", "labeled"),
        ("It rained.", "It was wet.", "entailment", "first", "labeled"),
        ("It rained.", "It was dry.", "contradiction", "first", "labeled"),
    ]
    assert all(isinstance(p, Pair) for p in found)


def test_pairs_of_one_premise_form_a_group_whatever_their_set(tmp_path):
    write(tmp_path, "first", ROWS)
    write(tmp_path, "second", ROWS[:1])
    groups = [p.group for p in sources.read([tmp_path], ["first", "second"])]
    assert groups[0] == groups[1] == groups[3] != groups[2]


def test_a_set_may_name_its_groups_and_kinds_and_stand_in_any_of_the_folders(tmp_path):
    (tmp_path / "more").mkdir()
    write(tmp_path, "first", ROWS[:1])
    write(tmp_path / "more", "second", [{**row, "group": "g1", "skill": "negation"} for row in ROWS[1:]])
    found = list(sources.read([tmp_path, tmp_path / "more"], ["first", "second"]))
    assert [p.kind for p in found] == ["labeled", "negation", "negation"]
    assert found[0].group != found[1].group == found[2].group  # twins have other premises and one group


def test_a_set_without_a_licence_may_not_ship():
    # Distribution needs terms that allow it; where nothing is stated, nothing is allowed.
    assert {name for name, terms in sources.KNOWN.items() if "none stated" in terms.licence} == {
        name for name, terms in sources.KNOWN.items() if not terms.may_ship
    }
    assert all(terms.what and terms.licence for terms in sources.KNOWN.values())


@pytest.mark.parametrize("name", sorted(sources.KNOWN))
def test_the_sets_at_hand_have_the_four_labels_alone(name):
    folders = [shared() / "nli/train", shared() / "nli/skills"]
    if not sources.files(folders, name):
        pytest.skip(f"{name}.jsonl is in none of {folders}: labeled sets of others are no part of this repository")
    found = list(sources.read(folders, [name]))
    assert {p.label for p in found} <= {"entailment", "neutral", "contradiction", "not_entailment"}
    assert all(p.premise.strip() and p.hypothesis.strip() for p in found)
