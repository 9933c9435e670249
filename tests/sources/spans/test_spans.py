"""Spans in, a trace or a reject out."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.types import Trace
from tasks.sources import Reject
from tasks.sources.reading.values import decode_json
from tasks.sources.spans import Assembled, Span, SpanSettings, assemble, batches, traces
from tasks.sources.spans.texts import Document, Message, SpanKind, documents_of, messages_of, text_of

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
QUESTION, ANSWER = "How long is the warranty?", "24 months [1]."
A, B, C = (Document(f"The text of passage {n}, which says something of its own.", f"doc-{n}") for n in "abc")


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def span(name: str, kind: SpanKind = "chain", start: float = 0, end: float | None = None, **fields: Any) -> Span:
    given: dict[str, Any] = {"span_id": name, "parent_id": "root", "name": name, **fields}
    return Span("t-1", kind=kind, start=at(start), end=at(start + 1 if end is None else end), **given)


def root(**fields: Any) -> Span:
    return span("root", start=0, end=9, **{"parent_id": None, "input": QUESTION, "output": ANSWER, **fields})


def search(*documents: Document, name: str = "search", start: float = 1, **fields: Any) -> Span:
    return span(name, "retriever", start, documents=documents, **fields)


def call(*prompt: str, **fields: Any) -> Span:
    messages = tuple(Message("user", text) for text in prompt)
    return span("call", "llm", 5, **{"messages": messages, "output": ANSWER, "model": "m-1", **fields})


def trace(spans: Iterable[Span], **settings: Any) -> Trace:
    found = assemble(list(spans), SpanSettings(**settings))
    assert found.reject is None
    assert found.trace
    return found.trace


def refused(spans: Iterable[Span], **settings: Any) -> Reject:
    found = assemble(list(spans), SpanSettings(**settings), 7)
    assert found.trace is None
    assert found.reject
    assert found.reject.line == 7
    assert QUESTION not in found.reject.detail
    return found.reject


def ids(spans: Iterable[Span], **settings: Any) -> list[str]:
    return [c.chunk_id for c in trace(spans, **settings).chunks]


@pytest.mark.parametrize(
    ("costs", "wanted"),
    [
        ((None, None, None), None),  # not known, which is not 0
        ((0.0, None, None), 0.0),
        ((None, 0.25, 0.5), 0.75),
        ((0.75, 0.25, 0.5), 0.75),  # the root's number has those below it in it
        ((0.0, 0.25, 0.5), 0.75),  # and zero where the store sums nothing up
        ((None, -1.0, 0.5), 0.5),
    ],
)
def test_cost(costs: tuple[float | None, ...], wanted: float | None) -> None:
    of_root, of_search, of_call = costs
    spans = [root(cost=of_root), search(Document("One passage.")), call("One passage.", cost=of_call)]
    spans[1] = replace(spans[1], cost=of_search)
    assert trace(spans).cost == wanted


def listed(*documents: Document) -> str:
    passages = "\n".join(f"[{n}] {d.text}" for n, d in enumerate(documents, 1))
    return f"Context:\n{passages}\n\nQuestion: {QUESTION}"


def test_all_fields() -> None:
    found = assemble(
        [
            root(tags={"lang": "en"}, session="s-1", app="shop", environment="prod"),
            search(Document("One passage.", "a", 0.5, {"source": "a.md", "title": "A"})),
            call("One passage.", tokens_in=7, tokens_out=3, prompt_version="v2"),
        ],
        SpanSettings(),
    )
    assert found.trace
    (chunk,) = found.trace.chunks
    assert (chunk.chunk_id, chunk.text, chunk.doc_id, chunk.title) == ("a", "One passage.", "a.md", "A")
    assert (chunk.rank, chunk.retrieval_score) == (1, 0.5)
    assert found.trace == Trace(
        trace_id="t-1", timestamp=NOON, app="shop", generator="m-1", question=QUESTION, answer=ANSWER, chunks=(chunk,),
        environment="prod", session="s-1", prompt_version="v2", retriever="search", latency_ms=9000.0, tokens_in=7,
        tokens_out=3, tags={"lang": "en"},
    )  # fmt: skip
    assert found.found.where == {
        "question": "root.input",
        "answer": "root.output",
        "chunks": "retriever 'search'",
        "ids": "document",
        "prompt": "prompt of llm 'call'",
        "generator": "model of llm 'call'",
    }
    assert found.found.spans["chunks"] == ("search",)
    assert found.found.missed == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (QUESTION, QUESTION),
        (json.dumps(QUESTION), QUESTION),
        ({"args": [QUESTION], "kwargs": {}}, QUESTION),
        ({"args": ["<shop.Pipeline object at 0x7f2e>", QUESTION]}, QUESTION),
        (json.dumps({"question": QUESTION, "k": 3}), QUESTION),
        ({"query_bundle": {"query_str": QUESTION, "embedding": None}}, QUESTION),
        ({"anything": QUESTION}, QUESTION),
        ([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": QUESTION}], QUESTION),
        ({"messages": [{"type": "human", "content": [{"type": "text", "text": QUESTION}]}]}, QUESTION),
        ([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}], QUESTION),
        ({"session": 1, "k": [2]}, None),
        (None, None),
        (5, None),
        ("[1] is what?", "[1] is what?"),
    ],
)  # fmt: skip
def test_question_in_many_forms(value: object, text: str | None) -> None:
    if text is None:
        assert refused([root(input=value), search(A)]).reason == "no_question"
    else:
        assert trace([root(input=value), search(A), call()]).question == text


def test_question_and_answer_under_keys_of_the_config() -> None:
    spans = [root(input={"question": "no", "form": {"ask": QUESTION}}, output={"answer": "no", "html": ANSWER})]
    found = trace(spans, question=["form.ask"], answer=["html"])
    assert (found.question, found.answer) == (QUESTION, ANSWER)


def test_question_is_never_the_prompt() -> None:
    assert refused([root(input=None), search(A, B), call(listed(A, B))]).reason == "question_holds_context"
    assert refused([root(input=listed(A, B)), search(A, B), call(listed(A, B))]).reason == "question_holds_context"
    quoting = f"What does “{A.text}” mean?"
    assert trace([root(input=quoting), search(A, B), call(listed(A, B))]).question == quoting


def test_question_below_a_root_without_input() -> None:
    inner = span("inner", start=0.5, end=8, input=QUESTION, output=ANSWER)
    spans = [root(input=None, output=None), inner, search(A), call(parent_id="inner")]
    found = assemble(spans, SpanSettings())
    assert found.trace
    assert found.found.where["question"] == "input of chain 'inner'"
    helpers = [span("lookup", "tool", 1, input={"city": "Paris"}), span("format", "chain", 1, input=[A.text, B.text])]
    assert refused([root(input=None), search(A, B), *helpers, call()]).reason == "no_question"


def test_a_single_call_of_a_model_is_a_trace() -> None:
    found = trace([call("Hello?", parent_id=None)])
    assert (found.question, found.answer, found.chunks) == ("Hello?", ANSWER, ())


@pytest.mark.parametrize("output", [None, "<generator object stream at 0x7f>", {"response_gen": "<generator object>", "response_txt": None}, "", {"n": 1, "m": 2}])  # fmt: skip
def test_answer_of_a_stream_is_the_output_of_the_last_call(output: object) -> None:
    first = span("rewrite", "llm", 0.5, output="A better question?")
    outer = span("outer", "llm", 5, 8, model="m-1")
    found = trace([root(output=output), first, search(A), outer, call(parent_id="outer")])
    assert found.answer == ANSWER


def test_no_answer() -> None:
    rewrite = span("rewrite", "llm", 0.5, output="A better question?")
    assert refused([root(output=None), rewrite, call(output=None, error=True)]).reason == "no_answer"
    assert refused([root(output=None, error=True), call()]).reason == "no_answer"
    assert refused([root(output=None)]).reason == "no_answer"
    assert refused([search(A, parent_id=None)]).reason == "no_answer"


def test_chunks_of_the_last_reranker() -> None:
    kept = [Document(id="doc-c", score=0.9), Document(id="doc-a", score=0.4)]
    rerank = span("rerank", "chain", 3, output=json.dumps([{"id": d.id, "score": d.score} for d in kept]))
    chunks = trace([root(), search(A, B, C), rerank, call()]).chunks
    assert [(c.chunk_id, c.text, c.retrieval_score) for c in chunks] == [("doc-c", C.text, 0.9), ("doc-a", A.text, 0.4)]


def test_chunks_are_the_union_of_the_outermost_searches() -> None:
    outer = search(A, B, name="outer", start=1, end=4)
    inner = search(B, C, name="inner", start=2, parent_id="outer")
    assert ids([root(), inner, outer, call()]) == ["doc-a", "doc-b"]
    second = search(B, C, name="second", start=3)
    assert ids([root(), second, search(A, B), call()]) == ["doc-a", "doc-b", "doc-c"]
    hollow = span("hollow", "retriever", 1, 4)
    assert ids([root(), hollow, search(A, parent_id="hollow"), call()]) == ["doc-a"]


def test_a_search_after_the_answer_gives_no_chunks() -> None:
    assert ids([root(), call(), search(A, start=7)]) == []
    assert ids([root(), call(), search(A), search(B, name="later", start=7)]) == ["doc-a"]


def test_chunks_of_a_named_tool() -> None:
    tool = span("lookup", "tool", 2, output=[{"text": A.text, "id": 5}, {"text": B.text, "id": "b"}, B.text])
    assert ids([root(), tool, call()]) == []
    assert ids([root(), tool, call()], tool="lookup") == ["5", "b", "3"]


def test_a_failed_search_takes_no_trace_away() -> None:
    assert ids([root(), search(name="failed", error=True), call()]) == []
    assert ids([root(), search(name="failed", error=True), search(A), call()]) == ["doc-a"]


def test_the_prompt_decides_order_and_choice() -> None:
    assert ids([root(), search(A, B, C), call(listed(C, A))]) == ["doc-c", "doc-a"]
    assert ids([root(), search(A, B, C), call(listed(C, A))], prompt="ignore") == ["doc-a", "doc-b", "doc-c"]
    assert ids([root(), search(A, B, C), call(f"Answer {QUESTION}")]) == ["doc-a", "doc-b", "doc-c"]
    history = (listed(C, B, A), ANSWER, listed(A, B))
    assert ids([root(), search(A, B), call(*history)]) == ["doc-a", "doc-b"]


def test_passages_that_the_prompt_wraps_or_cuts() -> None:
    long = Document("word " * 100 + "end", "long")
    wrapped = Document("two  lines\nof text", "wrapped")
    prompt = f"[1] {long.text[:300]} [2] two lines of\ntext [3] {A.text}\n{QUESTION}"
    assert ids([root(), search(A, wrapped, long), call(prompt)]) == ["long", "wrapped", "doc-a"]


def test_a_prompt_that_was_cut_off_takes_no_passage_away() -> None:
    found, prompt = [root(), search(C, A, B)], listed(B, C, A)
    for end in range(prompt.index(B.text) + len(B.text), prompt.index("Question")):
        shown = ids([*found, call(prompt[:end])])
        assert shown[0] == "doc-b"
        assert sorted(shown) == ["doc-a", "doc-b", "doc-c"]
    first = f"{QUESTION}\n{prompt}"
    assert sorted(ids([*found, call(first[: first.index(C.text) + 15])])) == ["doc-a", "doc-b", "doc-c"]
    rewritten = prompt.replace(QUESTION, "Which warranty?").replace(f"[3] {A.text}", "")
    assert ids([root(), search(C, A, B, input="Which warranty?"), call(rewritten)]) == ["doc-b", "doc-c"]


def test_values_that_were_cut_off() -> None:
    whole = json.dumps([{"id": "a", "text": A.text}])
    assert ids([root(), search(output=whole), call()]) == ["a"]
    assert refused([root(), search(output=whole[:-4]), call()]).reason == "malformed_span"
    assert refused([root(input=json.dumps({"question": QUESTION})[:-4]), search(A), call()]).reason == "no_question"
    assert trace([root(input="[urgent] Why?"), search(A), call()]).question == "[urgent] Why?"


def test_a_chain_with_rerank_in_its_name_is_a_reranker_where_it_gives_documents() -> None:
    assert ids([replace(root(), name="rerank_rag"), search(A), call()]) == ["doc-a"]
    assert ids([root(), search(A), span("rerank_and_answer", "chain", 2, output="text"), call()]) == ["doc-a"]


def test_a_passage_inside_of_another_keeps_its_own_place() -> None:
    inner, outer = (
        Document("Refunds take five days.", "inner"),
        Document("Note. Refunds take five days. Really.", "outer"),
    )
    assert ids([root(), search(inner, outer), call(listed(outer, inner))]) == ["outer", "inner"]


def test_copies_and_empty_texts_keep_the_numbers_of_the_others() -> None:
    empty = Document("", "empty")
    assert ids([root(), search(A, empty, B), call(listed(A, empty, B))]) == ["doc-a", "empty", "doc-b"]
    assert ids([root(), search(A, empty, B), call()]) == ["doc-a", "empty", "doc-b"]
    assert ids([root(), search(A, A, B), call(listed(A, A, B))]) == ["doc-a", "doc-a~2", "doc-b"]
    assert ids([root(), search(A, A, B), call(listed(A, B))]) == ["doc-a", "doc-b"]
    twice = [search(A, B), search(A, C, name="second", start=2)]
    assert ids([root(), *twice, call(listed(A, B, A, C))]) == ["doc-a", "doc-b", "doc-a~2", "doc-c"]
    assert ids([root(), *twice, call(listed(A, B, C))]) == ["doc-a", "doc-b", "doc-c"]


def test_a_short_passage_is_not_looked_for_in_the_prompt() -> None:
    short = Document("yes", "short")
    assert ids([root(), search(A, short, B), call(f"Say yes or no. {listed(A, short, B)}")]) == [
        "doc-a",
        "short",
        "doc-b",
    ]
    assert ids([root(), search(A, short, B), call(f"Say yes or no. {listed(B, A)}")]) == ["doc-b", "doc-a", "short"]
    inner = search(Document("no", "inner"), name="inner", start=2, parent_id="search")
    assert ids([root(), search(A, B, end=4), inner, call(f"Say yes or no. {listed(A, B)}")]) == ["doc-a", "doc-b"]


def test_ids_of_chunks() -> None:
    found = [Document("one", None), Document("two", None, None, {"chunk_id": 7}), Document("three", "3")]
    found += [Document("four", "3"), Document("five", None, None, {"key": "k"})]
    assert ids([root(), search(*found)]) == ["1", "7", "3", "3~2", "5"]
    assert ids([root(), search(*found)], chunk_id=["key"]) == ["1", "2", "3", "3~2", "k"]


def test_documents_without_text() -> None:
    assert refused([root(), search(Document(id="a"), Document(id="b"))]).reason == "no_chunk_text"


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        ([root(parent_id="call"), call()], "no_root"),
        ([call(parent_id="gone")], "no_root"),
        ([span("a", parent_id=None), span("b", parent_id=None)], "several_roots"),
        ([root(), root(span_id="root-2")], "several_roots"),
        ([root(), call(), search(A, start=20)], "clocks_disagree"),
        ([Span("t-1", "root", input=QUESTION, output=ANSWER)], "bad_timestamp"),
        ([root(input="a\0b")], "nul_character"),
        ([root(output="half \ud83d")], "invalid_utf8"),
        ([Span("\ud83d", "root", start=NOON, input=QUESTION, output=ANSWER)], "invalid_utf8"),
        ([Span("x" * 600, "root", start=NOON, input=QUESTION, output=ANSWER)], "out_of_range"),
        ([root(), search(Document("text", "x" * 600))], "out_of_range"),
        ([root(tokens_in=1), root(tokens_in=10**5000)], "malformed_span"),
    ],
)
def test_rejects(spans: list[Span], reason: str) -> None:
    found = refused(spans)
    assert found.reason == reason
    assert found.day in (NOON.date(), None)


def test_the_root_may_be_chosen() -> None:
    spans = [span("one", parent_id=None, input="no", output="no"), replace(root(), name="shop.answer"), call()]
    assert refused(spans).reason == "several_roots"
    assert trace(spans, root="shop.answer").question == QUESTION
    assert refused(spans, root="other").reason == "no_root"
    whole = [span("job", parent_id=None), root(), call()]
    assert trace(whole).question == QUESTION


def test_a_root_whose_parent_is_elsewhere() -> None:
    assert trace([root(parent_id="of-another-program"), search(A), call()]).question == QUESTION


def test_clocks_that_disagree_are_no_loss_where_the_prompt_tells() -> None:
    assert ids([root(), call(listed(B, A)), search(A, B, start=20)]) == ["doc-b", "doc-a"]


def test_kinds_by_name() -> None:
    spans = [root(), span("our_search", "chain", 1, output=[{"text": A.text, "id": "x"}]), call()]
    assert ids(spans) == []
    assert ids(spans, kinds={"our_search": "retriever"}) == ["x"]


def test_a_span_that_was_sent_twice_counts_once() -> None:
    assert ids([root(), search(A, B), search(A, B), call(), root()]) == ["doc-a", "doc-b"]


def test_a_span_that_was_sent_before_its_end() -> None:
    early = Span("t-1", "root", start=NOON, input=QUESTION)
    assert trace([early, root(), call()]).answer == trace([root(), call(), early]).answer == ANSWER


def test_large_attributes() -> None:
    text = "word " * 2_000_000
    spans = [root(), search(Document(text, "a"), B), call(listed(B, Document(text)))]
    (batch,) = batches(traces(spans, SpanSettings()))
    assert [c["chunk_id"] for c in batch.table["chunks"].to_pylist()[0]] == ["doc-b", "a"]


def test_ids_that_only_the_output_has() -> None:
    plain = [Document(A.text, None, 0.5), Document(B.text, None, 0.4)]
    output = {"documents": [{"id": "x", "page_content": A.text}, {"id": "y", "page_content": B.text}]}
    assert ids([root(), search(*plain, output=json.dumps(output)), call()]) == ["x", "y"]


@pytest.mark.parametrize(
    "value",
    [
        [{"page_content": "one", "metadata": {"score": 0.5}, "id": "a"}],
        {"documents": [{"content": "one", "id": "a", "score": 0.5}]},
        json.dumps({"matches": [{"id": "a", "score": "0.5", "metadata": {"text": "one"}}]}),
        [{"node": {"id_": "a", "text": "one"}, "score": 0.5}],
        [{"lc": 1, "type": "constructor", "id": ["langchain", "Document"], "kwargs": {"page_content": "one", "id": "a", "metadata": {"relevance_score": 0.5}}}],
    ],
)  # fmt: skip
def test_documents_in_many_forms(value: object) -> None:
    (found,) = documents_of(value)
    assert (found.text, found.score) == ("one", 0.5)
    assert found.id == "a"


def test_values() -> None:
    assert documents_of(["a text", 5, None]) == (Document("a text"),)
    assert documents_of({"answer": "x"}) == documents_of("x") == documents_of("[") == ()
    constructor = {"lc": 1, "id": ["langchain", "schema", "messages", "HumanMessage"], "type": "constructor", "kwargs": {"content": "hi", "type": "human"}}  # fmt: skip
    assert messages_of({"messages": [[constructor]]}) == (Message("human", "hi"),)
    assert text_of({"generations": [[{"text": "yes"}]]}, ["generations", "text"], set()) == "yes"
    assert decode_json(b'{"a": "\\ud83d"}') == {"a": "\ufffd"}
    assert decode_json(b'"\xff"') == "\ufffd"
    with pytest.raises(ValueError, match="trunc"):
        decode_json(b'{"a"')


def test_batches_number_traces_and_keep_rejects() -> None:
    bad = Reject(99, None, "malformed_span", "x", b"")
    spans = [root(), Span("t-2", "b"), Span("t-3", "c")]
    found = list(batches(traces([*spans, bad], SpanSettings(), lambda group: group[0].trace_id != "t-3")))
    assert [(b.rows, b.table.num_rows) for b in found] == [(3, 1)]
    lines = [r.line for b in found for r in b.rejects] + [n for b in found for n in b.table["line"].to_pylist()]
    assert sorted(lines) == [1, 2, 3]


def test_batches_take_any_value() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    odd = Span("t-\ud83d", "root", start=NOON, input=QUESTION, output={"answer": "x", "n": 10**40})
    found = list(batches(traces([odd, Span("t-3", "root", start=NOON, input=deep, output="x")], SpanSettings())))
    assert {r.reason for b in found for r in b.rejects} == {"invalid_utf8", "malformed_span"}


texts = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.just(QUESTION),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["question", "answer", "messages", "role", "content", "parts", "kwargs", "documents", "text", "id", "x"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
names = st.sampled_from(["", "a", "b", "c", "rerank"])
times = st.none() | st.integers(0, 9).map(at)
documents = st.builds(
    Document,
    st.sampled_from(["", A.text, B.text, "short"]) | texts,
    st.none() | names,
    st.none() | st.floats(),
    st.dictionaries(st.sampled_from(["id", "source", "score"]), values, max_size=2),
)
kinds = st.sampled_from(["llm", "retriever", "reranker", "embedding", "tool", "agent", "chain", "other"])
any_span = st.builds(
    Span, st.just("t-1"), names, st.none() | names, names, kinds, times, times, st.booleans(), values, values,
    st.lists(documents, max_size=3).map(tuple),
    st.lists(st.builds(Message, st.sampled_from(["user", "system", ""]), texts | st.just(listed(A, B))), max_size=2).map(tuple),
    st.none() | texts, st.none() | st.integers(), st.none() | st.integers(),
)  # fmt: skip


def outcome(found: Assembled) -> object:
    return found.trace, found.reject, found.found


@given(st.lists(any_span, min_size=1, max_size=6), st.randoms())
def test_any_spans_give_a_trace_or_a_reject_whatever_their_order(spans: list[Span], random: Any) -> None:
    found = assemble(spans, SpanSettings(tool="a"))
    assert (found.trace is None) != (found.reject is None)
    shuffled = list(spans)
    random.shuffle(shuffled)
    assert repr(outcome(assemble(shuffled, SpanSettings(tool="a")))) == repr(outcome(found))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True), st.lists(st.integers(0, 5), max_size=5))
def test_copies_that_a_later_search_finds_never_renumber(first: list[int], second: list[int]) -> None:
    def found(n: int) -> Document:
        return Document(f"Passage number {n}.", str(n))

    earlier = search(*map(found, first))
    later = search(*[found(n) for n in second if n in first], name="later", start=3)
    assert ids([root(), earlier, later, call()]) == ids([root(), earlier, call()]) == list(map(str, first))


@given(st.permutations(range(6)), st.integers(1, 6))
def test_a_number_means_the_passage_with_this_number_in_the_prompt(order: list[int], size: int) -> None:
    found = [Document(f"Passage number {n}.", f"id-{n}") for n in range(6)]
    shown = [found[n] for n in order[:size]]
    assert ids([root(), search(*found), call(listed(*shown))]) == [d.id for d in shown]
