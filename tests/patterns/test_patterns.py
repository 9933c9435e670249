"""Failure patterns: the definitions of docs/methods.md#failure-patterns, an example and a near miss each."""

from typing import get_args

import pytest

from tasks.core.config import Pattern
from tasks.patterns import DETECTORS, Chunk, Claim, Found, Place, find, rules


def claim(text: str, label: str = "unsupported", **more) -> Claim:
    return Claim(text, text, 0, len(text), label=label, **more)


def detect(name: str, text: str, *chunks: str, label: str = "unsupported", **more) -> Found | None:
    given = [Chunk(str(i), chunk) for i, chunk in enumerate(chunks, start=1)]
    return find([name], claim(text, label, **more), given).get(name)


def test_the_config_knows_every_detector() -> None:
    assert set(get_args(Pattern)) == set(DETECTORS)
    assert rules(["ghost_number"]).keys() == {"ghost_number"}


def test_only_what_is_asked_for_is_looked_for() -> None:
    one = claim("It costs 99 euros [9].", dangling=("9",))
    assert list(find(["ghost_number"], one, [Chunk("1", "It is cheap.")])) == ["ghost_number"]


# Ghost number: a figure in no chunk


def test_a_ghost_number_is_marked_and_others_are_not() -> None:
    found = detect("ghost_number", "Of 40 boats, 17 sank.", "A fleet of 40 boats left.")
    assert found == Found(answer_spans=((13, 15),))


@pytest.mark.parametrize("label", ["supported", "unsupported", "contradicted", None])
def test_a_ghost_number_is_one_whatever_the_judge_says(label) -> None:
    assert detect("ghost_number", "It took 17 days.", "It took weeks.", label=label)


@pytest.mark.parametrize(
    ("text", "chunk"),
    [
        ("It cost $1.2 million.", "Cost: 1,200,000 dollars."),
        ("It cost $1.2 million.", "In $ millions: 1.2 (2023)."),
        ("Half of it, 50%, was lost.", "Half of the crop was lost."),
        ("The rate was 12%.", "The rate was 0.12."),
        ("It happened in the 1990s.", "It happened in 1994."),
        ("In the 19th century it moved.", "It moved in 1856."),
        ("About 300 came.", "The gate counted 312 people."),
        ("The mean was 12 days.", "The mean was 12.3 days."),
        ("It rose on March 14, 2024.", "Log of 2024: on 14 March it rose."),
        ("It starts at 16:40.", "It starts at 4:40 pm."),
        ("COVID-19 and B12 were named.", "Both were named."),
        ("Passage ID 3 names two main types [4].", "It names types."),
        ("1. It is red.", "It is red."),
        ("See https://example.org/2031 for it.", "See it."),
        ("The two firms merged.", "Acme and Bolt merged."),
    ],
)
def test_no_ghost_where_a_chunk_has_the_figure_in_another_format_or_it_is_no_figure(text: str, chunk: str) -> None:
    assert detect("ghost_number", text, chunk) is None


@pytest.mark.parametrize(
    ("text", "chunk"),
    [
        ("The rate was 12%.", "Twelve boats, 12 in all, sank; 80% were saved."),
        ("Exactly 300 came.", "The gate counted 312 people."),
        ("It rose on March 14, 2024.", "It rose on March 3, 2024, by 14 points."),
        ("It happened in the 1990s.", "It happened in 1984."),
        ("It starts at 16:40.", "It starts at 4:40 am."),
        ("Up to 100 versions are kept.", "Up to 60 versions are kept."),
    ],
)
def test_a_figure_that_stands_there_for_something_else_is_a_ghost(text: str, chunk: str) -> None:
    assert detect("ghost_number", text, chunk)


def test_a_figure_of_a_title_is_no_ghost() -> None:
    one = claim("In 2023 it is free.")
    assert find(["ghost_number"], one, [Chunk("1", "It is free.", "Prices 2023")]) == {}


def test_without_chunks_no_figure_is_a_ghost() -> None:
    assert detect("ghost_number", "It took 17 days.") is None  # groundedness does not apply


# Citation drift and dangling citations


def test_citation_drift_names_the_chunks_that_support_the_claim() -> None:
    drift = detect("citation_drift", "A.", "no", "yes", label="supported", misused=True, deciding=("2",))
    assert drift == Found(chunk_spans=(Place("2", 0, 3),))


@pytest.mark.parametrize(("label", "misused"), [("supported", False), ("supported", None), ("unsupported", True)])
def test_no_drift_without_support_elsewhere(label: str, misused: bool | None) -> None:
    assert detect("citation_drift", "A.", "no", label=label, misused=misused, deciding=("1",)) is None


def test_a_dangling_citation_is_marked_where_it_stands() -> None:
    text = "4 cores are needed [4], as all agree [14]."
    assert detect("dangling_citation", text, "x", dangling=("4",)) == Found(answer_spans=((20, 21),))
    assert detect("dangling_citation", text, "x", dangling=("77",)) == Found()  # logged as structure
    assert detect("dangling_citation", text, "x") is None


# Stitched facts: parts from two chunks, the whole in neither

MUSEUM = "The mill museum opened in 1998 and attracts two million visitors a year."
OPENED, AQUARIUM = "The mill museum opened in 1998.", "The aquarium attracts two million visitors a year."


def test_stitched_facts_name_both_parts_and_where_they_are_from() -> None:
    found = detect("stitched_facts", MUSEUM, OPENED, AQUARIUM)
    assert found is not None
    assert [MUSEUM[a:b] for a, b in found.answer_spans] == [
        "The mill museum opened in 1998",
        "attracts two million visitors a year",
    ]
    assert [p.chunk_id for p in found.chunk_spans] == ["1", "2"]


def test_the_judge_s_word_on_both_chunks_lets_fewer_words_do() -> None:
    text = "The mill museum opened its doors in spring 1998 and attracts two million visitors a year."
    assert detect("stitched_facts", text, OPENED, AQUARIUM) is None
    assert detect("stitched_facts", text, OPENED, AQUARIUM, in_part=("1", "2"))


@pytest.mark.parametrize(
    ("label", "chunks"),
    [
        ("supported", (OPENED, AQUARIUM)),  # the two entail it together
        ("unsupported", (OPENED, "Trams run all night.")),  # the other part is nowhere
        ("unsupported", (OPENED + " " + AQUARIUM, "Trams run all night.")),  # one chunk has both
        ("unsupported", (MUSEUM, AQUARIUM)),
    ],
)
def test_nothing_is_stitched_where_one_chunk_gives_what_there_is(label: str, chunks: tuple[str, ...]) -> None:
    assert detect("stitched_facts", MUSEUM, *chunks, label=label) is None


# Generalized particular: one instance stated as a rule


@pytest.mark.parametrize(
    ("text", "chunk"),
    [
        ("Honey always heals burns.", "In one study of 12 patients, honey healed burns."),
        ("Bakeries save power by night baking.", "A bakery in Lund saved power by night baking."),
        ("Garlic prevents colds.", "A trial with 146 volunteers found that garlic prevented colds."),
    ],
)
def test_a_generalized_particular(text: str, chunk: str) -> None:
    found = detect("generalized_particular", text, chunk)
    assert found is not None
    assert found.chunk_spans == (Place("1", 0, len(chunk)),)


@pytest.mark.parametrize(
    ("text", "chunk", "label"),
    [
        ("Honey always heals burns.", "In one study of 12 patients, honey healed burns.", "supported"),
        ("Honey healed burns in one study.", "In one study of 12 patients, honey healed burns.", "unsupported"),
        ("Honey may heal burns.", "In one study of 12 patients, honey healed burns.", "unsupported"),
        ("Honey always heals burns.", "Honey heals burns.", "unsupported"),
        ("Honey always heals burns.", "In one study of 12 patients, mead was drunk.", "unsupported"),
    ],
)
def test_no_rule_is_made_of_a_particular(text: str, chunk: str, label: str) -> None:
    assert detect("generalized_particular", text, chunk, label=label) is None


# Reverse direction: X reduces Y turned into Y reduces X


@pytest.mark.parametrize(
    ("text", "chunk"),
    [
        ("Stress reduces exercise.", "Exercise reduces stress."),
        ("Exercise is reduced by stress.", "Exercise reduces stress."),
        ("Payment follows approval.", "Payment precedes approval."),
        ("Zinc is heavier than lead.", "Lead is heavier than zinc."),
        ("The backup runs after the check.", "The backup runs before the check."),
        ("If the server restarts, the disk fails.", "If the disk fails, the server restarts."),
    ],
)
def test_a_reverse_direction(text: str, chunk: str) -> None:
    found = detect("reverse_direction", text, chunk, label="contradicted")
    assert found is not None
    assert found.chunk_spans == (Place("1", 0, len(chunk)),)


@pytest.mark.parametrize(
    ("text", "chunk", "label"),
    [
        ("Stress reduces exercise.", "Exercise reduces stress.", "supported"),
        ("Stress is reduced by exercise.", "Exercise reduces stress.", "unsupported"),
        ("Approval follows payment, in a week.", "Payment precedes approval.", "unsupported"),
        ("Zinc is lighter than lead.", "Lead is heavier than zinc.", "unsupported"),
        ("Stress reduces sleep.", "Exercise reduces stress.", "unsupported"),
        ("The disk fails if the server restarts.", "If the server restarts, the disk fails.", "unsupported"),
    ],
)
def test_no_reversal_where_the_sides_are_the_same_in_another_form(text: str, chunk: str, label: str) -> None:
    assert detect("reverse_direction", text, chunk, label=label) is None


# Where it stands in the answer


def test_evidence_is_placed_in_the_answer_as_it_is_written() -> None:
    answer = "Intro.\n\n- It took **17 days** [1, 2] in all.\n"
    start, end = answer.index("It"), answer.index(" in all") + len(" in all.")
    one = Claim("It took 17 days in all.", answer, start, end, label="unsupported")
    (span,) = find(["ghost_number"], one, [Chunk("1", "It took weeks.")])["ghost_number"].answer_spans
    assert answer[slice(*span)] == "17"


def test_a_fact_in_words_of_its_own_is_placed_by_its_sentence() -> None:
    answer = "It went on for a fortnight."
    one = Claim("The strike lasted 14 days.", answer, 0, len(answer), label="unsupported")
    assert find(["ghost_number"], one, [Chunk("1", "A strike.")])["ghost_number"].answer_spans == ((0, len(answer)),)
