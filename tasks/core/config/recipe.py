"""The keys of a recipe: how answers are paired, judged and scored."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from tasks.core.config.base import ConfigPath, Pattern, Settings, Share
from tasks.core.config.names import GraderFile, JudgeFile


class Pairing(Settings):
    """The evidence for each claim, and so the cost.

    Attributes:
        kind: `per_chunk` every chunk, one by one; `top_k` the k chunks closest to the claim by embedding, and the cited
            ones; `cited` only the cited ones; `cited_together` the cited ones, together in one pair; `all_chunks` all
            of them together, in packs.
        k: Chunks for `top_k`.
        window_words: Splits longer chunks into windows of whole sentences with at most this many words.
        pack_words: Maximum of words in a pack of `all_chunks` or `cited_together`, at least `window_words`.
        joint_words: Maximum of words in a joint pair of the best windows, for claims that no single pair supports; 0
            turns them off. Cited chunks always get a joint pair, each with at least its best window.
    """

    kind: Literal["per_chunk", "top_k", "cited", "cited_together", "all_chunks"] = "per_chunk"
    k: Annotated[int, Field(ge=1)] = 5
    window_words: Annotated[int, Field(ge=20)] = 160
    pack_words: Annotated[int, Field(ge=20)] = 3_000
    joint_words: Annotated[int, Field(ge=0)] = 480

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.packs and self.pack_words < self.window_words:
            raise ValueError(
                "has pack_words below window_words, so a window does not fit into a pack; raise pack_words"
            )
        return self

    @property
    def packs(self) -> bool:
        """Whether a single pair shows several chunks at once."""
        return self.kind in ("all_chunks", "cited_together")


class Escalation(Settings):
    """A further judge of a cascade, more expensive than the previous one.

    Attributes:
        band: `[lo, hi]`: this judge gets a claim if lo ≤ p_supported < hi after the previous judge, or if the previous
            judge abstained or failed.
        judge: Name or path of the judge's config.
        pairing: The evidence for this judge.
    """

    band: tuple[Share, Share]
    judge: JudgeFile
    pairing: Pairing = Pairing()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.band[0] > self.band[1]:
            raise ValueError("has a band [lo, hi] with lo above hi; swap them")
        return self


class Shadow(Settings):
    """A judge that runs on a sample of every night, for comparison with the judge that counts.

    Attributes:
        judge: Name or path of the judge's config.
        share: Share of the traces that it judges, always the same ones for a night.
    """

    judge: JudgeFile
    share: Annotated[float, Field(gt=0, le=1)] = 0.1


class Scoring(Settings):
    """Parameters of the groundedness score (docs/methods.md#scores-of-one-trace).

    Attributes:
        misuse_penalty: Penalty of a misused claim, in supported claims.
        partial_credit: Weight of a partially supported claim.
        dangling_as_misuse: Whether a claim whose references all dangle counts as misused.
    """

    misuse_penalty: Annotated[float, Field(ge=0)] = 2.0
    partial_credit: Share = 0.0
    dangling_as_misuse: bool = False


class Triad(Settings):
    """Thresholds of the triad's three questions (docs/methods.md#the-triad-which-layer-failed)."""

    context_relevance: Share = 0.34
    groundedness: Annotated[float, Field(ge=0, le=100)] = 50.0
    answer_relevance: Share = 0.42


class Waterfall(Settings):
    """The lowest value with which a trace passes each stage; `leadline calibrate` finds them.

    Method: docs/methods.md#the-waterfall-what-is-safe-to-send.

    Attributes:
        retrieval: Threshold on the best chunk's relevance to the question.
        answerability: Threshold on the answerability of the question from the chunks.
        faithfulness: Threshold on the support of the answer's weakest claim, if no claim stops the answer by its label.
        answer_relevance: Threshold on the answer's relevance to the question.
        partial_passes: Whether partially supported claims do not stop the answer by their label.
    """

    retrieval: Share = 0.34
    answerability: Share = 0.0
    faithfulness: Share = 0.5
    answer_relevance: Share = 0.42
    partial_passes: bool = False


class _Method(Settings):
    """A scoring method, and the file of its model if it needs one."""

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
                raise ValueError(f"names a {key}, which method {self.method} does not use; remove it")
        return self


class AnswerRelevance(_Method):
    """Scores the relevance of an answer to its question (docs/methods.md#scores-of-one-trace).

    Attributes:
        method: `embedding` cosine of question and answer; `questions` mean cosine of the question and of questions that
            a model writes for the answer; `rated` a rating by a language model, 1 to 5.
        writer: For `questions`: name or path of the config (`kind: generate`) of the writing model.
        rater: For `rated`: name or path of the config (`kind: rater_model`) of the rater model; its prompt asks for a
            rating `answer_relevance`.
    """

    asks: ClassVar = {"questions": "writer", "rated": "rater"}

    method: Literal["embedding", "questions", "rated"] = "embedding"
    writer: JudgeFile | None = None
    rater: JudgeFile | None = None


class ContextRelevance(_Method):
    """Scores the relevance of each chunk to the question (docs/methods.md#scores-of-one-trace).

    Attributes:
        method: `embedding` cosine of question and chunk; `reranker` a cross-encoder's score of the two; `rated` a
            model's grade, 1 to 5.
        reranker: For `reranker`: name or path of the config (`kind: reranker`).
        rater: For `rated`: name or path of the config (`kind: rater_model`); its prompt asks for a rating
            `context_relevance`.
    """

    asks: ClassVar = {"reranker": "reranker", "rated": "rater"}

    method: Literal["embedding", "reranker", "rated"] = "embedding"
    reranker: JudgeFile | None = None
    rater: JudgeFile | None = None


class Answerability(_Method):
    """Decides whether the chunks alone answer a question.

    Method: docs/methods.md#scores-of-one-trace and #the-waterfall-what-is-safe-to-send.

    Attributes:
        method: `coverage` share of the question's words in the chunks, a baseline without a model; `rated` a
            model's yes or no.
        rater: For `rated`: name or path of the config (`kind: rater_model`); its prompt asks for a rating `answerable`.
    """

    asks: ClassVar = {"rated": "rater"}

    method: Literal["coverage", "rated"] = "coverage"
    rater: JudgeFile | None = None


class Grace(Settings):
    """Annotated right sources, and whether answers cite them (docs/methods.md#grace-citations-as-classification).

    Attributes:
        annotations: Path of a file of right sources by question: JSON lines or CSV with `question` and `gold_ids`. An
            entry for a trace's question overrides the trace's `gold_chunk_ids`. None uses only those.
        source: What counts as a source. With `chunk`, each chunk is one. With `doc`, all chunks with the same `doc_id`
            are one, and the file contains document ids; a chunk without a `doc_id` is its own source.
    """

    annotations: ConfigPath | None = None
    source: Literal["chunk", "doc"] = "chunk"


class Grades(Settings):
    """The six grades of each answer as a whole (docs/methods.md#grades-of-a-grounded-answer).

    Attributes:
        grader: Name or path of the grader's config; it must not need a reference answer. None gives no grades.
    """

    grader: GraderFile | None = None


class Recipe(Settings):
    """What is computed for every trace.

    Attributes:
        method: `claims` judges each claim against the trace's chunks; `citations` judges in two passes: cited claims
            against their cited chunks, and the others against the claims found true
            (docs/methods.md#citation-groundedness-two-passes).
        extractor: Settings of the claim extractor (`kind` and its own keys).
        apps: Per application, extractor settings that replace the recipe's, such as the citation style.
        earlier_questions: Earlier questions of its session that a follow-up question ("And for contractors?") is read
            with, by scorers of relevance, and in claims that need their question, such as "Yes.". 0 for none.
        judge: Name or path of the judge's config.
        cascade: Further judges, from cheap to expensive, for claims on which the previous judge was uncertain.
        shadow: A second judge on a sample of the traces; it changes no number of the recipe.
        relevance: Settings of the embedding model that scores relevance (and ranks chunks for `top_k`).
        answer_relevance: Method for the answer's relevance to the question.
        context_relevance: Method for each chunk's relevance to the question.
        answerability: Method for the question's answerability from the chunks.
        grades: The grader of whole answers.
        patterns: Failure patterns to search for; all by default.
    """

    name: str = "claims"
    method: Literal["claims", "citations"] = "claims"
    extractor: Mapping[str, Any] = Field(default_factory=lambda: {"kind": "sentences"})
    apps: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    earlier_questions: Annotated[int, Field(ge=0)] = 0
    pairing: Pairing = Pairing()
    judge: JudgeFile
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
    def _passes(self) -> Self:
        if self.method == "citations":
            if self.pairing.kind != "cited_together":
                raise ValueError(f"has method citations and pairing.kind {self.pairing.kind}; set it to cited_together")
            if self.cascade:
                raise ValueError("has method citations and a cascade; its two passes use one judge: remove cascade")
        return self
