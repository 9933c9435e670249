"""Tables of what comes in: traces, refused rows, read files, and what people asked to have removed."""

import pyarrow as pa

from tasks.core.schemas.columns import (
    APP,
    CHUNK,
    CITATION,
    DATE,
    F64,
    FEEDBACK,
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
        col("session", S, "Conversation that the question belongs to."),
        col("question", S, "What the user asked.", null=False),
        col("answer", S, "What the application answered, in Markdown.", null=False),
        col("chunks", pa.list_(CHUNK), "Retrieved passages, in the order they were given to the generator.", null=False),
        GENERATOR,
        col("prompt_version", S, "Version of the generator's prompt."),
        col("retriever", S, "Retriever that found the chunks."),
        col("latency_ms", F64, "Time to answer, milliseconds."),
        col("tokens_in", I64, "Prompt tokens of the generator."),
        col("tokens_out", I64, "Completion tokens of the generator."),
        col("tags", pa.map_(S, S), "Free labels.", null=False),
        col("reference_answer", S, "A known good answer."),
        col("gold_chunk_ids", STRINGS, "Annotated right sources."),
        col("citations", pa.list_(CITATION), "References logged as structure: spans of the answer and the chunks they cite."),
        col("feedback", FEEDBACK, "What the user said of the answer."),
        col("repeat", I32, "Which repetition of the same question this is."),
        col("content_hash", S, "Hash of the whole trace; tells a harmless copy from a conflicting one.", null=False),
        col("text_redacted_at", TS, "When question, answer, titles and texts of chunks, reference answer, comment, session and tags were removed; null while they are here."),
        col("text_redacted", S, "Why: `expired` (`retention.text_days`) or `deleted` (`leadline forget`)."),
    ]),
    ("date",),
    remade="",
    lost="its traces and their texts. Where their log file is still there, remove the part of `sources` too whose name this one begins with: the file is read again",
)  # fmt: skip

NEVER_READ = ("content_hash", "text_redacted_at", "text_redacted")  # columns of `traces` that no source gives

QUARANTINE = Table(
    "quarantine",
    "one refused row",
    pa.schema([
        col("source", S, "File, or table for results.", null=False),
        col("line", I64, "Line of the file, from 1; null for results."),
        col("trace_id", S, "Trace, where it could be read."),
        col("date", pa.date32(), "Night that the row counts for: the day of its timestamp, or else of its file (`{date}` in the source's path), or else the last day of the run that read it. Null for lines of people's labels."),
        col("stage", S, "`parse`, `gate`, `duplicate`, `results` or `reviews`.", null=False),
        col("reason", S, "Machine-readable reason.", null=False),
        col("detail", S, "What was found, without trace text."),
        col("raw", S, "The row as it came; bytes that are not UTF-8 are escaped as \\xNN.", null=False),
    ]),
    remade="",
    lost="refused rows, as they came and why",
)  # fmt: skip

REDACTIONS = Table(
    "redactions",
    "one trace whose text was asked to be removed",
    pa.schema([
        TRACE_ID,
        col("requested_at", TS, "When it was asked.", null=False),
        col("reason", S, "Why, in the words of who asked; null where they gave none."),
        col("redacted_at", TS, "When its text was gone everywhere; null until then. A trace that was not here is refused when it comes."),
    ]),
    remade="",
    lost="a request to remove the text of a trace: a line of it that comes again is kept, text and all. Ask again with `leadline forget`",
)  # fmt: skip

SOURCES = Table(
    "sources",
    "one ingested state of one source file",
    pa.schema([
        col("source", S, "File or URL; null where its row was lost and its traces were adopted."),
        col("fingerprint", S, "Hash of its size and modification time or ETag; null as `source` is."),
        col("rows", I64, "Rows in it: ingested + known + quarantined.", null=False),
        col("ingested", I64, "New traces.", null=False),
        col("known", I64, "Traces that were already there, unchanged.", null=False),
        col("quarantined", I64, "Rows refused.", null=False),
        col("ingested_at", TS, "When.", null=False),
    ]),
    remade="",
    lost="which file its traces came from. The traces stay, and where the file is still there, it is read again",
)  # fmt: skip
