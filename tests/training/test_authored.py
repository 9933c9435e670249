"""The authored documents: what their pairs promise, on drawn documents, and that the repository's own data keep it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.text.nearest import COUNT, units
from training import authored, recipe
from training.authored import Claim, Document

DATA = recipe.HERE / "data/authored"
FORMS = ("sentences", "documents")
DRAWN = settings(max_examples=40, deadline=None)
AS_IT_IS = {"P": "neutral", "U": "neutral", "C": "contradiction"}  # of a false claim beside what it is about
# What each kind of pair says of its claim: with all that a supported claim needs it is entailed, without a part of that
# it is not; a false claim is entailed once its remedy stands in the text.
ENTAILED = {"needed", "whole", "core"}
NEVER = {"alike", "needed_part", "one_gone", "few_without", "stranger", "without", "verbatim_gone"}
ALWAYS = {"remedied", "put_in", "verbatim"}


@st.composite
def documents(draw, fewest=1, most=4):
    """Documents whose every sentence, claim and remedy is a text of its own, so that one can be looked for in another."""
    return tuple(draw_document(draw, number) for number in range(draw(st.integers(fewest, most))))


def draw_document(draw, number):
    size = draw(st.integers(2, 8))
    # Some sentences are long enough to stand as claims themselves (six words), some are not.
    long = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    sentences = tuple(
        f"<d{number} s{i}> tells how the matter stands." if is_long else f"<d{number} s{i}> Contents."
        for i, is_long in enumerate(long)
    )
    made = [draw_claim(draw, number, k, size) for k in range(draw(st.integers(1, 5)))]
    return Document(sentences, tuple(made), draw(st.sampled_from(["authored", "natural"])), f"{number:032x}")


def draw_claim(draw, number, k, size):
    label = draw(st.sampled_from("SPUC"))
    fewest = 1 if label in "SC" else 0  # nothing can be contradicted, or supported, by no sentence
    needs = draw(st.lists(st.integers(0, size - 1), min_size=fewest, max_size=4, unique=True))
    remedy = f"<d{number} r{k}> sets it right." if label != "S" and draw(st.booleans()) else None
    return Claim(f"<d{number} c{k}> is claimed here.", label, tuple(needs), "drawn", remedy)


def of(found, claim):
    return [p for p in found if p.hypothesis == claim.text]


def needed(document, claim):
    return [document.sentences[i] for i in claim.needs]


@DRAWN
@given(documents(fewest=2), st.integers(0, 99), st.sampled_from(FORMS))
def test_every_claim_stands_beside_evidence_that_entails_it_and_beside_some_that_does_not(docs, seed, form):
    found = list(authored.pairs(docs, seed, form))
    for document in docs:
        for claim in document.claims:
            labels = {p.label == "entailment" for p in of(found, claim) if p.premise}
            assert labels == {True, False}


@DRAWN
@given(documents(fewest=2), st.integers(0, 99), st.sampled_from(FORMS))
def test_labels_follow_from_what_was_done(docs, seed, form):
    for document, own in by_document(docs, seed, form):
        claims = {c.text: c for c in document.claims}
        for pair in own:
            claim = claims.get(pair.hypothesis)
            if pair.kind in NEVER:
                assert pair.label == "neutral"
            elif pair.kind in ALWAYS or claim.label == "S":
                assert pair.kind in ALWAYS | ENTAILED
                assert pair.label == "entailment"
            else:
                assert pair.kind in {"needed", "whole"}
                assert pair.label == AS_IT_IS[claim.label]


def by_document(docs, seed, form):
    found = list(authored.pairs(docs, seed, form))
    return [(d, [p for p in found if p.group == d.group]) for d in docs]


@DRAWN
@given(documents(fewest=2), st.integers(0, 99), st.sampled_from(FORMS))
def test_what_a_supported_claim_needs_is_there_or_a_part_of_it_is_gone(docs, seed, form):
    for document, own in by_document(docs, seed, form):
        for claim in document.claims:
            if claim.label != "S":
                continue
            for pair in of(own, claim):
                present = [s in pair.premise for s in needed(document, claim)]
                if pair.kind in ENTAILED:
                    assert all(present)
                elif pair.kind in {"one_gone", "needed_part"}:
                    assert present.count(False) == 1
                elif pair.kind == "few_without":
                    assert present == [False] + [True] * (len(present) - 1)
                else:
                    assert pair.kind in {"alike", "stranger"}
                    assert not any(present)


@DRAWN
@given(documents(fewest=2), st.integers(0, 99))
def test_one_gone_keeps_every_other_sentence(docs, seed):
    for document, own in by_document(docs, seed, "documents"):
        for pair in own:
            if pair.kind in {"one_gone", "verbatim_gone"}:
                assert sum(s not in pair.premise for s in document.sentences) == 1


@DRAWN
@given(documents(fewest=2), st.integers(0, 99), st.sampled_from(FORMS))
def test_a_remedied_document_holds_the_remedy_or_the_claim_and_nothing_that_says_otherwise(docs, seed, form):
    for document, own in by_document(docs, seed, form):
        for claim in document.claims:
            made = [p for p in of(own, claim) if p.kind in {"remedied", "put_in"}]
            assert any(p.kind == "remedied" for p in made) == (claim.label != "S")
            for pair in made:
                reported = [t for t in (claim.remedy, claim.text) if t is not None and t in pair.premise]
                assert len(reported) == 1
                if pair.kind == "put_in" or claim.remedy is None:
                    assert reported == [claim.text]
                elif form == "sentences":
                    assert reported == [claim.remedy]
                gone = [s for s in document.sentences if s not in pair.premise]
                if claim.label == "C":
                    assert set(needed(document, claim)) <= set(gone)
                if form == "documents":
                    assert gone == [
                        s for i, s in enumerate(document.sentences) if claim.label == "C" and i in claim.needs
                    ]


def test_most_remedied_documents_hold_the_remedy():
    # The remedy is taken with 0.75: of 400 claims 300, give or take five standard deviations, sqrt(400 * 3/16) = 8.7.
    claims = tuple(Claim(f"<c{i}>", "U", (), "drawn", f"<r{i}>") for i in range(400))
    document = Document(("First of all.", "Then more."), claims, "natural", "0" * 32)
    found = [p for p in authored.pairs([document, document], 0, "documents") if p.kind == "remedied"][:400]
    assert 256 < sum(p.hypothesis.replace("c", "r") in p.premise for p in found) < 344


@DRAWN
@given(documents(fewest=2), st.integers(0, 99), st.sampled_from(FORMS))
def test_a_sentence_of_the_document_is_entailed_until_it_is_taken_away(docs, seed, form):
    for document, own in by_document(docs, seed, form):
        verbatim = [p for p in own if p.kind == "verbatim"]
        gone = [p for p in own if p.kind == "verbatim_gone"]
        assert [p.hypothesis for p in verbatim] == [p.hypothesis for p in gone]
        assert len(verbatim) == min(2, sum("tells" in s for s in document.sentences))
        assert all(p.hypothesis in p.premise for p in verbatim)
        assert not any(p.hypothesis in p.premise for p in gone)


@DRAWN
@given(documents(fewest=3, most=3), documents(fewest=2, most=2), st.integers(0, 99), st.sampled_from(FORMS))
def test_pairs_depend_on_the_document_and_its_neighbors_alone(docs, others, seed, form):
    before, document, after = docs
    first, last = (Document(o.sentences, o.claims, o.source, f"{i + 50:032x}") for i, o in enumerate(others))
    alone = [p for p in authored.pairs([before, document, after], seed, form) if p.group == document.group]
    amid = [p for p in authored.pairs([first, before, document, after, last], seed, form) if p.group == document.group]
    assert alone == amid


@DRAWN
@given(documents(fewest=2), st.integers(0, 99), st.sampled_from(FORMS))
def test_the_same_seed_gives_the_same_pairs(docs, seed, form):
    assert list(authored.pairs(docs, seed, form)) == list(authored.pairs(docs, seed, form))


def test_another_seed_gives_other_pairs(repository):
    first, second = (list(authored.pairs(repository[:20], seed, "documents")) for seed in (0, 1))
    assert first != second


def test_the_most_alike_sentence_is_the_one_with_most_of_the_claims_words():
    sentences = ("The ferry sails at nine.", "The ferry to Oban sails at noon.", "Tickets are sold aboard.")
    claim = Claim("The Oban ferry sails at nine.", "S", (0,), "drawn", None)
    document = Document(sentences, (claim,), "authored", "1" * 32)
    found = {
        p.kind: p.premise for p in authored.pairs([document, document], 0, "sentences") if p.hypothesis == claim.text
    }
    # Of the two that it doesn't need, the second shares ferry, Oban and sails with it, the third nothing.
    assert found["alike"] == sentences[1]


def test_pairs_of_a_document_follow_the_order_that_people_read_in():
    sentences = tuple(f"Sentence {name} of it is here." for name in ("one", "two", "three"))
    document = Document(sentences, (Claim("All.", "S", (2, 0), "drawn", None),), "authored", "2" * 32)
    made = [
        p for seed in range(20) for p in authored.pairs([document, document], seed, "documents") if p.kind == "core"
    ]
    assert {p.premise for p in made} == {" ".join(sentences), f"{sentences[0]} {sentences[2]}"}


# The folder -----------------------------------------------------------------------------------------------------------


def line(number, label="S", **more):
    row = {"t": "It rained.", "l": label, "s": [0], "k": "paraphrase", **more}
    return json.dumps(
        {"domain": "d", "style": "s", "doc": [f"Rain fell on day {number}.", "It was cold."], "claims": [row]}
    )


def test_documents_are_read_in_the_order_of_names_and_lines(tmp_path):
    (tmp_path / "b.jsonl").write_text(f"{line(3)}\n\n{line(4)}\n", encoding="utf-8")
    (tmp_path / "a.jsonl").write_text(line(1), encoding="utf-8")
    (tmp_path / "natural_1.jsonl").write_text(line(9, "C", f="Rain fell."), encoding="utf-8")
    (tmp_path / "README.md").write_text("Not data.", encoding="utf-8")
    found = authored.read(tmp_path)
    assert [d.sentences[0] for d in found] == [f"Rain fell on day {i}." for i in (1, 3, 4, 9)]
    assert [d.source for d in found] == ["authored"] * 3 + ["natural"]
    assert found[0].claims == (Claim("It rained.", "S", (0,), "paraphrase", None),)
    assert found[3].claims == (Claim("It rained.", "C", (0,), "paraphrase", "Rain fell."),)


def test_the_held_out_tenth_stays_when_documents_are_added(tmp_path):
    (tmp_path / "m.jsonl").write_text("\n".join(line(i) for i in range(200)), encoding="utf-8")
    before = {d.sentences: authored.held_out(d) for d in authored.read(tmp_path)}
    (tmp_path / "a.jsonl").write_text("\n".join(line(i) for i in range(500, 600)), encoding="utf-8")
    (tmp_path / "z.jsonl").write_text("\n".join(line(i) for i in range(700, 800)), encoding="utf-8")
    # Other claims on the same text move nothing either.
    (tmp_path / "m.jsonl").write_text("\n".join(line(i, "U") for i in range(200)), encoding="utf-8")
    after = {d.sentences: authored.held_out(d) for d in authored.read(tmp_path)}
    assert len(after) == 400
    assert {s: after[s] for s in before} == before
    assert 0 < sum(before.values()) < 60  # 20 expected; sqrt(200 * 0.09) = 4.2


@pytest.mark.parametrize(
    ("label", "expected"),
    [("S", "supported"), ("P", "partially_supported"), ("U", "not_supported"), ("C", "contradicted")],
)
def test_labeled_rows_hold_the_whole_document(label, expected):
    document = Document(("One.", "Two."), (Claim("Three.", label, (), "drawn", None),), "natural", "3" * 32)
    row = {
        "claim": "Three.",
        "chunks": ["One. Two."],
        "label": expected,
        "source": "natural",
        "kind": "drawn",
        "pair": "",
    }
    assert list(authored.labeled([document])) == [row]


# The repository's own data --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def repository():
    return authored.read(DATA)


@pytest.fixture(scope="module")
def rows():
    """(file:line, whether on a natural document, the row) of each line, read without the code under test."""
    return [
        (f"{path.name}:{i}", path.name.startswith("natural"), json.loads(text))
        for path in sorted(DATA.glob("*.jsonl"))
        for i, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if text
    ]


def broken(rows, check):
    """Where a check of (natural, row, claim) fails: file and line, never the text."""
    return [where for where, natural, row in rows for claim in row["claims"] if not check(natural, row, claim)]


def test_every_line_of_the_repository_is_a_document(repository, rows):
    assert len(repository) == len(rows) > 0
    assert not [where for where, _, row in rows if len(row["doc"]) < 2 or not row["claims"]]
    assert not [where for where, _, row in rows if any(not s.strip() for s in row["doc"])]


def test_documents_and_their_sentences_stand_in_the_repository_once(repository):
    assert len({d.group for d in repository}) == len(repository)
    # A sentence that stood twice would still be there when it is taken away.
    assert not [d.group for d in repository if len(set(d.sentences)) < len(d.sentences)]
    assert not [d.group for d in repository if len({c.hypothesis for c in d.claims}) < len(d.claims)]


def test_labels_of_the_repository_are_known(rows):
    assert not broken(rows, lambda _natural, _row, c: c["l"] in authored.PEOPLE and c["k"])
    assert not broken(rows, lambda _natural, _row, c: c["t"].strip() == c["t"] != "")


def test_the_sentences_that_claims_need_are_there(rows):
    assert not broken(rows, lambda _natural, row, c: all(0 <= i < len(row["doc"]) for i in c["s"]))
    assert not broken(rows, lambda _natural, _row, c: len(set(c["s"])) == len(c["s"]))
    # Something supports a supported claim and contradicts a contradicted one.
    assert not broken(rows, lambda _natural, _row, c: c["s"] or c["l"] in "PU")


def test_false_claims_on_natural_documents_have_a_remedy_and_true_ones_have_none(rows):
    assert not broken(rows, lambda natural, _row, c: not natural or c["l"] == "S" or (c.get("f") or "").strip())
    assert not broken(rows, lambda _natural, _row, c: c["l"] != "S" or c.get("f") is None)
    assert not broken(rows, lambda _natural, _row, c: c.get("f") != c["t"])


def test_a_tenth_of_the_repository_is_held_out(repository):
    share = sum(map(authored.held_out, repository)) / len(repository)
    assert abs(share - 0.1) < 4 * (0.09 / len(repository)) ** 0.5  # four standard deviations


@pytest.mark.parametrize("form", FORMS)
def test_claims_of_the_repository_are_about_as_often_entailed_as_not(repository, form):
    # Every fifth document: enough for the share, and of all domains.
    found = [p for p in authored.pairs(repository[::5], 0, form) if not p.kind.startswith("verbatim")]
    assert 0.43 < sum(p.label == "entailment" for p in found) / len(found) < 0.55


# Minimal pairs --------------------------------------------------------------------------------------------------------

LEAVE = {
    "domain": "hr", "style": "page",
    "doc": ["Five days may be carried over.", "They lapse on 31 March.", "Requests reach HR by 30 June.", "We use cookies."],
    "claims": [
        {"t": "Days carried over lapse on 31 March.", "l": "S", "s": [0, 1], "k": "date", "w": 1, "q": "Do days lapse?"},
        {"t": "Days carried over lapse on 30 June.", "l": "C", "s": [1], "k": "date", "w": 0},
        {"t": "Yes.", "l": "S", "s": [0], "k": "yes_no", "q": "May days be carried over?"},
        {"t": "They lapse on 31 March.", "l": "S", "s": [1], "k": "pronoun", "b": "Five days may be carried over."},
    ],
}  # fmt: skip


@pytest.fixture
def leave(tmp_path):
    (tmp_path / "twins_1.jsonl").write_text(json.dumps(LEAVE), encoding="utf-8")
    (document,) = authored.read(tmp_path)
    return document


def test_a_claim_is_read_with_the_question_or_the_sentence_that_it_needs(leave):
    assert leave.source == "twins"
    assert [claim.hypothesis for claim in leave.claims] == [
        "Days carried over lapse on 31 March.",  # it can be read without its question
        "Days carried over lapse on 30 June.",
        "May days be carried over? Yes.",
        "Five days may be carried over. They lapse on 31 March.",
    ]
    assert [row["claim"] for row in authored.labeled([leave])] == [claim.hypothesis for claim in leave.claims]


def test_both_twins_stand_beside_a_document_in_which_the_wrong_one_is_right(leave):
    right, wrong, *_ = (claim.hypothesis for claim in leave.claims)
    found = [p for p in authored.pairs([leave, leave], 0, "documents") if wrong in p.premise]
    assert {(p.hypothesis, p.label) for p in found} == {(wrong, "entailment"), (right, "contradiction")}
    assert not [p for p in found if "31 March" in p.premise]


@pytest.mark.parametrize("seed", range(5))
def test_nearest_sentences_hold_what_decides_a_claim_and_are_as_many_whatever_its_label_is(leave, seed):
    found = [authored.shortened(p) for p in authored.pairs([leave, leave], seed, "documents")]
    assert {p.label for p in found} == {"entailment", "neutral", "contradiction"}
    for p in found:
        needed = [leave.sentences[i] for c in leave.claims if c.hypothesis == p.hypothesis for i in c.needs]
        if p.kind in {"whole", "core"}:
            assert all(sentence in p.premise for sentence in needed)
        assert len(units(p.premise)) <= max(COUNT, sum(len(units(sentence)) for sentence in needed))


def test_twins_of_the_repository_point_at_each_other_and_one_of_them_is_right(repository):
    paired = [(d, i, c) for d in repository for i, c in enumerate(d.claims) if c.twin is not None]
    assert paired
    assert not [d.group for d, i, c in paired if d.claims[c.twin].twin != i]
    assert not [d.group for d, _, c in paired if (c.label == "S") == (d.claims[c.twin].label == "S")]
