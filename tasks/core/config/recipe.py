"""The keys of a recipe: how answers are paired, judged and scored."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from tasks.core.config.base import Pattern, Settings, Share, _absolute


class Pairing(Settings):
    """Which evidence the judge is shown with a claim (the cost dial).

    Attributes:
        kind: `per_chunk` every chunk, one by one; `top_k` the k chunks nearest to the claim by embedding, and those it
            cites; `cited` only those it cites; `cited_together` those it cites, together in one look; `all_chunks` all
            of them together, in packs.
        k: Chunks for `top_k`.
        window_words: A chunk longer than this is read in windows of whole sentences up to this many words.
        pack_words: Most words of a pack of `all_chunks` or `cited_together`, at least `window_words`.
        joint_words: Most words of the best windows, of one chunk or several, that are shown together when no look
            supports a claim; 0 = never. Cited chunks are shown together in any case, each with its best window at
            least.
    """

    kind: Literal["per_chunk", "top_k", "cited", "cited_together", "all_chunks"] = "per_chunk"
    k: Annotated[int, Field(ge=1)] = 5
    window_words: Annotated[int, Field(ge=20)] = 160
    pack_words: Annotated[int, Field(ge=20)] = 3_000
    joint_words: Annotated[int, Field(ge=0)] = 480

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.packs and self.pack_words < self.window_words:
            raise ValueError("has pack_words below window_words, so that a window fits no pack; raise pack_words")
        return self

    @property
    def packs(self) -> bool:
        """Whether a single pair shows several chunks at once."""
        return self.kind in ("all_chunks", "cited_together")


class Escalation(Settings):
    """A further judge of a cascade, dearer than the one before it.

    Attributes:
        band: `[lo, hi]`: a claim goes on to this judge where lo ≤ p_supported < hi after the one before it, and where
            that one abstained or failed.
        judge: Path of the judge's config.
        pairing: Which evidence this judge is shown with a claim.
    """

    band: tuple[Share, Share]
    judge: Path
    pairing: Pairing = Pairing()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.band[0] > self.band[1]:
            raise ValueError("has a band [lo, hi] with lo above hi; swap them")
        return self


class Shadow(Settings):
    """A judge that runs every night beside the one that counts, on a sample, to be compared with it.

    Attributes:
        judge: Path of the judge's config.
        share: Share of the traces that it judges, the same ones whenever a night is run.
    """

    judge: Path
    share: Annotated[float, Field(gt=0, le=1)] = 0.1


class Scoring(Settings):
    """Parameters of METHODS section 4.

    Attributes:
        misuse_penalty: What a misused claim costs, in supported claims.
        partial_credit: What a partially supported claim counts.
        dangling_as_misuse: Whether a claim whose references all dangle counts as misused.
    """

    misuse_penalty: Annotated[float, Field(ge=0)] = 2.0
    partial_credit: Share = 0.0
    dangling_as_misuse: bool = False


class Triad(Settings):
    """From where on each of the triad's three questions is answered with yes (METHODS section 6)."""

    context_relevance: Share = 0.34
    groundedness: Annotated[float, Field(ge=0, le=100)] = 50.0
    answer_relevance: Share = 0.42


class Waterfall(Settings):
    """The lowest value with which a trace passes each stage (METHODS section 7); `leadline calibrate` finds them.

    Attributes:
        retrieval: Of the best chunk's relevance to the question.
        answerability: Of the answerability of the question from the chunks.
        faithfulness: Of the support of the answer's weakest claim, where no claim stops the answer by its label.
        answer_relevance: Of the answer's relevance to the question.
        partial_passes: Whether a claim that is supported in part does not stop the answer by its label.
    """

    retrieval: Share = 0.34
    answerability: Share = 0.0
    faithfulness: Share = 0.5
    answer_relevance: Share = 0.42
    partial_passes: bool = False


class _Method(Settings):
    """A method of scoring, and the file of the model that it asks, where it asks one."""

    asks: ClassVar[Mapping[str, str]] = {}
    """Method -> the key that names its model's file."""

    method: str

    @model_validator(mode="after")
    def _asked(self) -> Self:
        due = self.asks.get(self.method)
        if due is not None and getattr(self, due) is None:
            raise ValueError(f"has method {self.method} and no {due}; name the file of its model there")
        for key in sorted(set(self.asks.values()) - {due}):
            if getattr(self, key) is not None:
                raise ValueError(f"names a {key}, which method {self.method} does not ask; remove it")
        return self

    @property
    def model_file(self) -> Path | None:
        """Of the model that the method asks; None where it asks none."""
        key = self.asks.get(self.method)
        return getattr(self, key) if key else None

    def placed(self, base: Path) -> Self:
        """The same with absolute paths."""
        paths = {key: getattr(self, key) for key in self.asks.values()}
        return self.model_copy(update={key: path and _absolute(base, path) for key, path in paths.items()})


class AnswerRelevance(_Method):
    """How the relevance of an answer to its question is scored (METHODS section 4).

    Attributes:
        method: `embedding` cosine of question and answer; `questions` mean cosine of the question and of questions that
            a model writes to the answer; `rated` a rating by a language model, 1 to 5.
        writer: Of `questions`: path of the config (`kind: generate`) of the model that writes.
        rater: Of `rated`: path of the config (`kind: rater_model`) of the rater model; its prompt asks for a rating
            `answer_relevance`.
    """

    asks: ClassVar = {"questions": "writer", "rated": "rater"}

    method: Literal["embedding", "questions", "rated"] = "embedding"
    writer: Path | None = None
    rater: Path | None = None


class ContextRelevance(_Method):
    """How the relevance of each chunk to the question is scored (METHODS section 4).

    Attributes:
        method: `embedding` cosine of question and chunk; `reranker` a cross-encoder's score of the two; `rated` a
            model's grade, 1 to 5.
        reranker: Of `reranker`: path of the config (`kind: reranker`).
        rater: Of `rated`: path of the config (`kind: rater_model`); its prompt asks for a rating `context_relevance`.
    """

    asks: ClassVar = {"reranker": "reranker", "rated": "rater"}

    method: Literal["embedding", "reranker", "rated"] = "embedding"
    reranker: Path | None = None
    rater: Path | None = None


class Answerability(_Method):
    """How it is told whether a question can be answered from the chunks alone (METHODS sections 4 and 7).

    Attributes:
        method: `coverage` share of the question's words that the chunks have, a baseline without a model; `rated` a
            model's yes or no.
        rater: Of `rated`: path of the config (`kind: rater_model`); its prompt asks for a rating `answerable`.
    """

    asks: ClassVar = {"rated": "rater"}

    method: Literal["coverage", "rated"] = "coverage"
    rater: Path | None = None


class Grace(Settings):
    """Annotated right sources, and whether answers cite them (METHODS section 8).

    Attributes:
        annotations: Path of a file of right sources by question: JSON lines or CSV with `question` and `gold_ids`.
            Where it has a trace's question, it goes before the trace's own `gold_chunk_ids`. None: those alone.
        source: Which id is a source. With `chunk`, each chunk is one. With `doc`, all chunks with the same `doc_id` are
            one, and the file's ids are documents; a chunk without a `doc_id` is one by itself.
    """

    annotations: Path | None = None
    source: Literal["chunk", "doc"] = "chunk"


class Grades(Settings):
    """The six grades of each answer as a whole (METHODS section 9).

    Attributes:
        grader: Path of the config of the grader that gives them, one that needs no reference answer; none: no grades.
    """

    grader: Path | None = None


class Recipe(Settings):
    """What is computed of every trace.

    Attributes:
        method: `claims` judges each claim against the trace's chunks; `citations` judges in two rounds, cited claims
            against what they cite, and the others against those found true (METHODS section 5).
        extractor: Settings of the claim extractor (`kind` and its own keys).
        apps: Per application, extractor settings that replace the recipe's, such as the citation style.
        judge: Path of the judge's config.
        cascade: Further judges, from cheap to dear, for the claims that the one before left uncertain.
        shadow: A judge that runs beside, on a sample; no number of the recipe changes by it.
        relevance: Settings of the embedding model that scores relevance (and ranks chunks for `top_k`).
        answer_relevance: How the answer's relevance to the question is scored.
        context_relevance: How each chunk's relevance to the question is scored.
        answerability: How it is told whether the chunks answer the question.
        grades: What grades each answer as a whole.
        patterns: Failure patterns to look for in claims; all by default.
    """

    name: str = "claims"
    method: Literal["claims", "citations"] = "claims"
    extractor: Mapping[str, Any] = Field(default_factory=lambda: {"kind": "sentences"})
    apps: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    pairing: Pairing = Pairing()
    judge: Path
    cascade: tuple[Escalation, ...] = ()
    shadow: Shadow | None = None
    relevance: Mapping[str, Any] = Field(default_factory=dict)
    answer_relevance: AnswerRelevance = AnswerRelevance()
    context_relevance: ContextRelevance = ContextRelevance()
    answerability: Answerability = Answerability()
    grades: Grades = Grades()
    patterns: tuple[Pattern, ...] = get_args(Pattern)
    scoring: Scoring = Scoring()
    triad: Triad = Triad()
    waterfall: Waterfall = Waterfall()
    grace: Grace = Grace()

    @model_validator(mode="after")
    def _rounds(self) -> Self:
        if self.method == "citations":
            if self.pairing.kind != "cited_together":
                raise ValueError(f"has method citations and pairing.kind {self.pairing.kind}; set it to cited_together")
            if self.cascade:
                raise ValueError("has method citations and a cascade; its two rounds ask one judge: leave cascade out")
        return self
