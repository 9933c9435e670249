"""Labeled data: each format with planted rows, what is left out and counted, and what belongs together."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.accuracy import labeled
from tasks.core import keys
from training import authored

DAM, DOG = "The dam was finished in 1936.", "A dog barked all night."


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(r) for r in rows) + "\n", encoding="utf-8")
    return path


# Files of claims ------------------------------------------------------------------------------------------------------


def rows_of_claims():
    return [
        {"claim": "The dam is done [1].", "chunks": [DAM, DOG], "label": "supported", "source": "x"},
        {"claim": "The dam is *old*.", "chunks": [DAM, DOG], "label": "partially_supported", "source": "x"},
        {"claim": "It rained.", "chunks": [DOG], "label": "not_supported", "source": "x"},
        {"claim": "No dog barked.", "chunks": [DOG], "label": "contradicted", "source": "x"},
        {"claim": "The dam leaks.", "chunks": [DAM], "label": "unsupported", "source": "x"},
        {"claim": "Who knows?", "chunks": [DAM], "label": "unclear", "source": "x"},
        {"claim": "Nothing to go by.", "chunks": [], "label": "not_supported", "source": "x"},
    ]


def test_a_file_of_claims(tmp_path):
    found = labeled.load(write(tmp_path / "made.jsonl", rows_of_claims()))
    assert found.labels == ["supported", "partially_supported", "not_supported", "contradicted", "unsupported"]
    # Supported alone counts: partially supported is not enough.
    assert found.truth.tolist() == [1, 0, 0, 0, 0]
    assert found.owners.tolist() == [0, 0, 1, 1, 2, 3, 4]
    # A claim is read without its references and markup, a chunk as it is.
    assert [(r.premise, r.hypothesis) for r in found.requests[:4]] == [
        (DAM, "The dam is done."),
        (DOG, "The dam is done."),
        (DAM, "The dam is old."),
        (DOG, "The dam is old."),
    ]
    assert all(r.key == keys.request_key(r.premise, r.hypothesis) for r in found.requests)
    assert sum(found.skipped.values()) == 2
    assert found.skipped["label unclear"] == 1


def test_claims_on_the_same_chunks_belong_together(tmp_path):
    one, two, three, four, five = labeled.load(write(tmp_path / "made.jsonl", rows_of_claims())).clusters
    assert one == two
    assert three == four
    assert len({one, three, five}) == 3


def test_claims_that_are_drawn_keep_their_order_and_their_requests(tmp_path):
    def each(claims):
        parts = zip(claims.labels, claims.clusters, claims.kinds, claims.pairs, strict=True)
        return [
            (*part, [r for r, owner in zip(claims.requests, claims.owners, strict=True) if owner == i])
            for i, part in enumerate(parts)
        ]

    rows = [{**row, "kind": f"kind {i}", "pair": f"pair {i}"} for i, row in enumerate(rows_of_claims())]
    claims = labeled.load(write(tmp_path / "made.jsonl", rows))
    found = each(claims.drawn(3))
    assert len(found) == 3
    assert found == [claim for claim in each(claims) if claim in found]
    assert claims.drawn(None) is claims.drawn(5) is claims


def test_blank_lines_are_no_rows(tmp_path):
    path = tmp_path / "made.jsonl"
    path.write_text("\n\n" + json.dumps(rows_of_claims()[0]) + "\n  \n", encoding="utf-8")
    assert labeled.load(path).labels == ["supported"]


@pytest.mark.parametrize(
    ("claim", "read"),
    [
        ("Tea is hot [1].", "Tea is hot."),
        ("Tea [1][2] is hot [1, 2; 3].", "Tea is hot."),
        ("Tea is hot [1-3] [4–6].", "Tea is hot."),
        ("Tea [a] is hot in [2024, at 5].", "Tea [a] is hot in [2024, at 5]."),
    ],
)
def test_references_are_no_part_of_a_claim(tmp_path, claim, read):
    rows = [{"claim": claim, "chunks": [DAM], "label": "supported"}]
    assert labeled.load(write(tmp_path / "made.jsonl", rows)).requests[0].hypothesis == read


# Traces ---------------------------------------------------------------------------------------------------------------


def traces(folder, *labels):
    """Two traces that use the same ids for other chunks, and labels `(trace, support, cited chunks)`."""
    chunks = {"t1": {"1": DAM, "2": DOG}, "t2": {"1": "Tea is hot.", "3": "Milk is cold."}}
    write(
        folder / "traces.jsonl",
        [{"trace_id": t, "chunks": [{"chunk_id": c, "text": x} for c, x in own.items()]} for t, own in chunks.items()],
    )
    rows = [
        {"trace_id": t, "claim_index": i, "claim": f"Claim {i} [1].", "cited_chunk_ids": cited, "support": support}
        for i, (t, support, cited) in enumerate(labels)
    ]
    write(folder / "labels.jsonl", rows)
    return labeled.load(folder)


def test_a_folder_of_traces_gives_each_claim_the_chunks_that_it_cites(tmp_path):
    found = traces(tmp_path, ("t1", "Complete", ["2"]), ("t2", "Partial", ["1", "3"]), ("t1", "Incomplete", ["1", "9"]))
    assert found.labels == ["supported", "partially_supported", "unsupported"]
    assert found.truth.tolist() == [1, 0, 0]
    assert found.clusters == ["t1", "t2", "t1"]
    pairs = [(owner, r.premise, r.hypothesis) for owner, r in zip(found.owners.tolist(), found.requests, strict=True)]
    assert pairs == [
        (0, DOG, "Claim 0."),
        (1, "Tea is hot.", "Claim 1."),
        (1, "Milk is cold.", "Claim 1."),
        (2, DAM, "Claim 2."),  # chunk 9 is not in the trace
    ]
    assert not found.skipped


def test_unusable_labels_and_claims_without_chunks_are_left_out_and_counted(tmp_path):
    found = traces(
        tmp_path,
        *[("t1", "Complete", ["1"]), ("t1", "Missing", []), ("t2", "N/A", ["1"]), ("t2", "N/A", [])],
        *[("t1", "Complete", []), ("t2", "Partial", ["2"])],  # chunk 2 is another trace's
    )
    assert found.labels == ["supported"]
    assert found.skipped == {"label Missing": 1, "label N/A": 2, "no chunks": 2}


# Authored documents ---------------------------------------------------------------------------------------------------


def test_of_authored_documents_the_held_out_tenth_is_read_with_the_whole_document_as_evidence(tmp_path):
    claims = [{"t": "It rained.", "l": "S", "s": [0], "k": "x"}, {"t": "It snowed.", "l": "C", "s": [0], "k": "x"}]
    rows = [{"doc": [f"It rained on day {i}.", "We stayed in."], "claims": claims} for i in range(100)]
    write(tmp_path / "weather.jsonl", rows)
    held = [d for d in authored.read(tmp_path) if authored.held_out(d)]
    found = labeled.load(tmp_path)
    assert 0 < len(held) < 100
    assert found.labels == ["supported", "contradicted"] * len(held)
    assert [r.premise for r in found.requests[::2]] == [" ".join(d.sentences) for d in held]
    assert len(set(found.clusters)) == len(held)  # the two claims of a document belong together


# All of it ------------------------------------------------------------------------------------------------------------


def test_sets_are_named_by_file_or_by_the_folder_above_dev(tmp_path):
    traces(tmp_path / "people/dev", ("t1", "Complete", ["1"]))
    write(tmp_path / "wice.jsonl", rows_of_claims())
    found = labeled.load_all([tmp_path / "people/dev", tmp_path / "wice.jsonl"])
    assert {name: len(claims.labels) for name, claims in found.items()} == {"people": 1, "wice": 5}


def test_the_default_sets_are_those_at_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("LEADLINE_SHARED", str(tmp_path))
    own = {"authored", "natural", "twins", "assistant"}  # the repository's own
    assert set(labeled.load_all()) == own
    write(tmp_path / "data/nli/dev/wice.jsonl", rows_of_claims())
    assert set(labeled.load_all()) == {"wice", *own}


def test_data_that_are_not_there_end_the_command_with_their_path_and_a_remedy(tmp_path):
    with pytest.raises(SystemExit) as caught:
        labeled.load(tmp_path / "missing")
    assert str(tmp_path / "missing") in str(caught.value)
    assert "--data" in str(caught.value)


@given(st.lists(st.lists(st.floats(-5, 5), max_size=4), min_size=1, max_size=20))
def test_a_claim_is_as_supported_as_its_best_chunk_says(scores):
    owners = np.array([i for i, own in enumerate(scores) for _ in own], dtype=np.int64)
    made = labeled.Claims(["supported"] * len(scores), [], [], owners, labeled.Counter())
    best = made.best(np.array([s for own in scores for s in own], dtype=float))
    assert best.tolist() == [max(own, default=-np.inf) for own in scores]


# As counted by whoever published or prepared the sets.
SIZES = {"wice": 349, "qags_cnndm": 714, "climate_fever": 1125, "covidfact": 419}
SIZES |= {"gensearch": 405, "hagrid": 217, "factcheck_gpt": 699, "fool_me_twice": 500}


@pytest.mark.parametrize("name", sorted(SIZES))
def test_the_sets_at_hand_are_read_whole(name):
    path = labeled.shared() / f"nli/dev/{name}.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not there: labeled sets of others are no part of this repository")
    found = labeled.load(path)
    assert len(found.labels) + sum(found.skipped.values()) == SIZES[name]
    assert set(found.labels) <= labeled.USABLE
    assert 0 < found.truth.sum() < len(found.labels)


def test_the_traces_at_hand_are_read_whole():
    path = labeled.default_data()
    if not path.exists():
        pytest.skip(f"{path} is not there: labeled traces of others are no part of this repository")
    found = labeled.load(path)
    assert len(found.labels) + sum(found.skipped.values()) == 1835
    assert len(set(found.clusters)) <= 306 - 94  # 94 of the 306 traces came without retrieved text
    assert set(found.labels) == {"supported", "partially_supported", "unsupported"}
