"""Logs traces of a shop's assistant by the SDK of a store: `python log_traces.py KIND URL COUNT`, with the store's Python.

Every fifth answer only greets. Of the others, every second one also claims what no document has. Two documents are
found each time, and the first one is cited. Credentials are in the variables that the SDK reads.
"""

# ruff: noqa: PLC0415 - each environment has one of the SDKs

import sys
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

PROJECT = "shop"
SPANS = 3  # of each trace
FIRST = datetime(2025, 11, 1, 12, tzinfo=UTC)  # of a trace each ten seconds
TOPICS = {
    "How long may I return a reader?": "A reader may be returned within thirty days.",
    "How is the battery charged?": "The battery is charged by the cable in the box.",
    "Which formats does the reader open?": "The reader opens books in the formats EPUB and PDF.",
    "Does the cover come with a pen?": "The leather cover comes with a pen and a loop.",
    "Where is my library kept?": "The library is kept on the reader and in the account.",
}
NOWHERE = "The price includes a voucher for nine audio books."


class Step(NamedTuple):
    """A question, the documents that were found, the prompt with them, the answer, and when it was asked."""

    question: str
    documents: list[str]
    prompt: str
    answer: str
    at: datetime


def steps(count: int) -> list[Step]:
    """What is logged."""
    topics = list(TOPICS.items())
    found = []
    for n in range(count):
        question, fact = topics[n % 5]
        documents = [fact, topics[(n + 2) % 5][1]]
        prompt = "\n\n".join([*(f"[{i}] {text}" for i, text in enumerate(documents, 1)), question])
        answer = "Hello!" if n % 5 == 4 else f"{fact[:-1]} [1]." + (f" {NOWHERE}" if n % 2 else "")
        found.append(Step(f"{question[:-1]}, order {n}?", documents, prompt, answer, FIRST + timedelta(seconds=10 * n)))
    return found


def phoenix(url: str, count: int) -> None:
    """By the OpenInference exporter of OpenTelemetry."""
    from openinference.instrumentation import Document, Message, get_llm_attributes, get_retriever_attributes
    from phoenix.otel import register

    provider = register(endpoint=f"{url}/v1/traces", project_name=PROJECT, batch=True, verbose=False)
    tracer = provider.get_tracer("shop")
    for step in steps(count):
        start, search, call, end = (_ns(step.at, second) for second in (0, 1, 2, 3))
        documents = [Document(content=text, id=f"d{n}") for n, text in enumerate(step.documents)]
        with tracer.start_as_current_span("answer", openinference_span_kind="chain", start_time=start, end_on_exit=False) as root:  # fmt: skip
            root.set_input(step.question)
            with tracer.start_as_current_span("search", openinference_span_kind="retriever", start_time=search, end_on_exit=False) as span:  # fmt: skip
                span.set_input(step.question)
                span.set_attributes(get_retriever_attributes(documents=documents))
                span.end(call)
            with tracer.start_as_current_span("chat", openinference_span_kind="llm", start_time=call, end_on_exit=False) as span:  # fmt: skip
                asked, reply = (Message(role=r, content=t) for r, t in (("user", step.prompt), ("assistant", step.answer)))  # fmt: skip
                span.set_attributes(get_llm_attributes(model_name="m-1", input_messages=[asked], output_messages=[reply]))  # fmt: skip
                span.end(end)
            root.set_output(step.answer)
            root.end(end)
    provider.shutdown()


def mlflow(url: str, count: int) -> None:
    """By MLflow's own tracing."""
    import mlflow
    from mlflow.entities import Document, SpanType

    mlflow.set_tracking_uri(url)
    mlflow.set_experiment(PROJECT)
    for step in steps(count):
        start, search, call, end = (_ns(step.at, second) for second in (0, 1, 2, 3))
        open_span = mlflow.start_span_no_context
        root = open_span("answer", SpanType.CHAIN, inputs={"question": step.question}, start_time_ns=start)
        span = open_span("search", SpanType.RETRIEVER, root, {"query": step.question}, start_time_ns=search)
        span.set_outputs([Document(text, {"source": "help"}, id=f"d{n}") for n, text in enumerate(step.documents)])
        span.end(end_time_ns=call)
        messages = [{"role": "user", "content": step.prompt}]
        model = {"mlflow.llm.model": "m-1"}
        span = open_span("chat", SpanType.CHAT_MODEL, root, {"messages": messages}, model, start_time_ns=call)
        span.set_outputs({"role": "assistant", "content": step.answer})
        span.end(end_time_ns=end)
        root.set_outputs({"answer": step.answer})
        root.end(end_time_ns=end)
    mlflow.flush_trace_async_logging(terminate=True)


def _ns(at: datetime, second: int) -> int:
    return (int(at.timestamp()) + second) * 1_000_000_000


if __name__ == "__main__":
    kind, url, count = sys.argv[1:]
    {"phoenix": phoenix, "mlflow": mlflow}[kind](url, int(count))
