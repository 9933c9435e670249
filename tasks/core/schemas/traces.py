"""Tables of input: traces, refused rows, files that were read, and requests to remove texts."""

import pyarrow as pa

from tasks.core.schemas.columns import (
    APP,
    CHUNK,
    CITATION,
    DATE,
    F64,
    GENERATOR,
    I32,
    I64,
    STRINGS,
    TRACE_ID,
    TS,
    S,
    Table,
    col,
)

TRACES = Table(
    "traces",
    "one answered question",
    pa.schema([
        DATE,
        TRACE_ID,
        col("timestamp", TS, "When the question was answered.", null=False),
        APP,
        col("environment", S, "Deployment environment."),
        col("session", S, "Conversation of the question."),
        col("question", S, "The user's question.", null=False),
        col("answer", S, "The application's answer, in Markdown.", null=False),
        col("chunks", pa.list_(CHUNK), "Retrieved passages, in the generator's order.", null=False),
        GENERATOR,
        col("prompt_version", S, "Version of the generator's prompt."),
        col("retriever", S, "Retriever that found the chunks."),
        col("latency_ms", F64, "Time to answer, in milliseconds."),
        col("tokens_in", I64, "Prompt tokens of the generator."),
        col("tokens_out", I64, "Completion tokens of the generator."),
        col("cost", F64, "What the answer cost the application, in US dollars; null if it is not known."),
        col("tags", pa.map_(S, S), "Free labels.", null=False),
        col("reference_answer", S, "A known good answer."),
        col("gold_chunk_ids", STRINGS, "Annotated right sources."),
        col("citations", pa.list_(CITATION), "Citations logged as structure: spans of the answer and the chunks they cite."),
        col("repeat", I32, "Number of the repetition of the same question."),
        col("content_hash", S, "Hash of the whole trace but its feedback; separates harmless copies from conflicting ones.", null=False),
        col("text_redacted_at", TS, "When question, answer, titles and texts of chunks, reference answer, session and tags were removed; null before."),
        col("text_redacted", S, "Why: `expired` (`retention.text_days`) or `deleted` (`leadline forget`)."),
    ]),
    ("date",),
    remade="",
    lost="its traces and their texts. If their log file still exists, also remove the part of `sources` with the first part of this name: then the file is read again",
)  # fmt: skip

NEVER_READ = ("content_hash", "text_redacted_at", "text_redacted")  # columns of `traces` that no source provides

FEEDBACK = Table(
    "feedback",
    "one rating of one answer by its user, as it was read",
    pa.schema([
        DATE,
        TRACE_ID,
        col("score", F64, "The rating, on the application's own scale."),
        col("comment", S, "What the user wrote; null once the trace's text was removed."),
        col("read_at", TS, "When it was read. The latest row of a trace counts; view `latest_feedback` has only these.", null=False),
    ]),
    ("date",),
    remade="",
    lost="ratings of users. If the source still has them, also remove the part of `sources` of the same name: then it is read again",
)  # fmt: skip

QUARANTINE = Table(
    "quarantine",
    "one refused row",
    pa.schema([
        col("source", S, "File, or table for results.", null=False),
        col("line", I64, "Line of the file, from 1; null for results."),
        col("trace_id", S, "Trace id, if it could be read."),
        col("date", pa.date32(), "Night of the row: the day of its timestamp, otherwise of its file (`{date}` in the source's path), otherwise the last day of the run that read it. Null for lines of people's labels."),
        col("stage", S, "`parse`, `gate`, `duplicate`, `results` or `reviews`.", null=False),
        col("reason", S, "Machine-readable reason.", null=False),
        col("detail", S, "Details, without trace text."),
        col("raw", S, "The original row, or the beginning of a long one; bytes that are not UTF-8 are escaped as \\xNN.", null=False),
    ]),
    remade="",
    lost="refused rows and their reasons",
)  # fmt: skip

REDACTIONS = Table(
    "redactions",
    "one request to remove the text of a trace",
    pa.schema([
        TRACE_ID,
        col("requested_at", TS, "Time of the request.", null=False),
        col("reason", S, "The given reason; null if there was none."),
        col("redacted_at", TS, "When its text was removed everywhere; null before. If the trace arrives later, it is refused."),
    ]),
    remade="",
    lost="a request to remove the text of a trace: if the trace arrives again, it is stored with its text. Repeat the request with `leadline forget`",
)  # fmt: skip

SAMPLES = Table(
    "samples",
    "one application and generator of one day of which `sample.per_day` takes a part",
    pa.schema([
        DATE,
        APP,
        GENERATOR,
        col("seen", I64, "Its traces when the share was decided.", null=False),
        col("share", F64, "Share of them that is taken; it stays for traces of the day that come later. A count of traces / share estimates that of all.", null=False),
    ]),
    ("date",),
    remade="",
    lost="the shares of a day: traces of it that come later get another share",
)  # fmt: skip

SOURCES = Table(
    "sources",
    "one ingested version of one source file",
    pa.schema([
        col("source", S, "File or URL; null if its row was lost and its traces were adopted."),
        col("fingerprint", S, "Hash of its size and modification time or ETag; null if `source` is null."),
        col("rows", I64, "Rows in it: ingested + duplicates + sampled_out + quarantined.", null=False),
        col("ingested", I64, "New traces.", null=False),
        col("duplicates", I64, "Traces that were already stored, unchanged.", null=False),
        col("sampled_out", I64, "Traces that `sample` in the config left out.", null=False),
        col("quarantined", I64, "Rows refused.", null=False),
        col("ingested_at", TS, "Time of the ingest.", null=False),
    ]),
    remade="",
    lost="which file its traces came from. The traces stay, and if the file still exists, it is read again",
)  # fmt: skip
