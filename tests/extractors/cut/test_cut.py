"""What is cut from an answer: kinds, what each claim cites, and what it is read with (docs/methods.md#claims)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.accuracy import extraction
from tasks.core.types import KINDS, Answer, Chunk, Extraction
from tasks.extractors import load, load_by_app

TRACE = (Chunk("a", "t"), Chunk("b", "t"), Chunk("c", "t"))  # [1], [2], [3]
Row = tuple[str, str, str]


def cut(answer: str, chunks: tuple[Chunk, ...] = TRACE, question: str = "", kind: str = "sentences") -> Extraction:
    (found,) = load({"kind": kind}, "test.yaml").extract_many([Answer(question, answer, chunks)])
    return found


def rows(answer: str, chunks: tuple[Chunk, ...] = TRACE, **more: Any) -> list[Row]:
    """Kind, text and what is cited, dangling references with an exclamation mark."""
    return [
        (d.kind, answer[d.start : d.end], " ".join([*d.cited_chunk_ids, *(f"!{name}" for name in d.dangling)]))
        for d in cut(answer, chunks, **more).claims
    ]


def claims(answer: str, chunks: tuple[Chunk, ...] = TRACE, **more: Any) -> list[tuple[str, str]]:
    return [(text, cited) for kind, text, cited in rows(answer, chunks, **more) if kind == "claim"]


def read(answer: str, question: str = "") -> list[str]:
    """What a judge reads of each claim."""
    return [d.hypothesis for d in cut(answer, question=question).claims if d.kind == "claim"]


class TestSources:
    def test_a_line_of_several_that_are_cited_above_in_part_is_a_list(self) -> None:
        """What it says again changes nothing; c is new, and goes to the text before it."""
        assert rows("Apples are red [1].\n\nPears are green.\n\nSources: [1], [3]") == [
            ("claim", "Apples are red", "a"),
            ("claim", "Pears are green.", "c"),
        ]

    def test_a_list_may_stand_below_its_word_without_a_colon(self) -> None:
        chunks = (Chunk("a", "t", doc_id="fees.pdf"), Chunk("b", "t", doc_id="rules.pdf"))
        answer = "Apples are red. Pears are green.\n\nReferences\n[1] fees.pdf\n[2] rules.pdf"
        assert rows(answer, chunks) == [("claim", "Apples are red.", "a b"), ("claim", "Pears are green.", "a b")]

    @pytest.mark.parametrize(
        "line", ["Source: [1]", "**Source:** [1]", "(Source: 1)", "Sources: 1", "[1]", "Quelle: [1]"]
    )
    def test_a_last_line_of_sources_is_no_claim_and_covers_all_claims_where_nothing_else_is_cited(
        self, line: str
    ) -> None:
        answer = f"Backups run at night.\n\nThey are kept for ninety days.\n\n{line}"
        assert rows(answer) == [
            ("claim", "Backups run at night.", "a"),
            ("claim", "They are kept for ninety days.", "a"),
        ]

    def test_a_dangling_one_counts_too(self) -> None:
        assert claims("Backups run at night.\n\nSource: [7]") == [("Backups run at night.", "!7")]

    def test_it_covers_what_it_follows_where_something_else_is_cited(self) -> None:
        answer = "Apples are red [1].\n\nPears are green. Plums are blue.\n\nSource: [2]"
        assert claims(answer) == [("Apples are red", "a"), ("Pears are green.", "b"), ("Plums are blue.", "b")]

    def test_a_section_has_its_own_line(self) -> None:
        answer = "## Apples\n\nThey are red.\n\nSource: [1]\n\n## Pears\n\nThey are green.\n\nSource: [2]"
        assert claims(answer) == [("They are red.", "a"), ("They are green.", "b")]

    def test_a_list_that_says_again_what_is_cited_above_changes_nothing(self) -> None:
        answer = "Apples are red [1]. Pears are green [2].\n\nEat both.\n\nSources:\n[1] Apple Book\n[2] Pear Book"
        assert claims(answer) == [("Apples are red", "a"), ("Pears are green", "b"), ("Eat both.", "")]

    def test_what_only_the_list_names_goes_to_the_text_before_it(self) -> None:
        answer = "Apples are red [1]. Pears are green [2].\n\nSources:\n[1] Apple Book\n[9] Plum Book"
        assert claims(answer) == [("Apples are red", "a"), ("Pears are green", "b !9")]

    def test_a_list_names_documents_by_their_titles(self) -> None:
        chunks = (Chunk("a", "t", title="Apple Book"), Chunk("b", "t", title="Pear Book"))
        assert claims("Pears are green.\n\nSources:\n- Pear Book, 2020", chunks) == [("Pears are green.", "b")]

    def test_the_answers_own_list_says_what_its_numbers_mean(self) -> None:
        chunks = (Chunk("a", "t", title="Apple Book"), Chunk("b", "t", title="Pear Book"))
        answer = "Pears are green [1].\n\nSources:\n[1] Pear Book"
        assert claims(answer, chunks) == [("Pears are green", "b")]

    def test_under_segments_too(self) -> None:
        assert claims("Apples are red. So are plums.\n\nSource: [1]", kind="segments") == [
            ("Apples are red. So are plums.", "a")
        ]


class TestHtml:
    def test_tags_mean_what_their_markdown_means(self) -> None:
        answer = (
            "<h2>Fruit</h2><p class='x'>Apples are <b>red</b> [1].<br>Pears are green [2].</p>\n   <ul>\n     <li>Plums [3]"
            "\n     <li>Figs</ul><table><tr><th>Fruit</th><th>Price</th></tr><tr><td>Kiwi</td><td>$2 [1]</td></tr></table>"
        )
        assert rows(answer) == [
            ("heading", "Fruit", ""),
            ("claim", "Apples are <b>red</b>", "a"),
            ("claim", "Pears are green", "b"),
            ("claim", "Plums", "c"),
            ("claim", "Figs", ""),
            ("claim", "$2", "a"),
        ]
        assert read(answer)[-1] == "Price, Kiwi: $2"

    def test_code_that_shows_tags_is_text(self) -> None:
        assert rows("Write `<p>` around it. <pre>x[1]</pre> Then save.") == [
            ("claim", "Write `<p>` around it.", ""),
            ("claim", "Then save.", ""),
        ]

    def test_a_tag_that_is_written_about_hides_nothing(self) -> None:
        assert claims("It takes any HTML, <script> too [1]. Nothing is removed.") == [
            ("It takes any HTML, <script> too", "a"),
            ("Nothing is removed.", ""),
        ]

    @pytest.mark.parametrize(
        "block",
        [
            "<think>Chunk [2] says blue. Is it?</think>\n\n",
            "<thinking>\n- [2]\n</thinking>",
            "[THINK]Hm [2].[/THINK]",
            "I should look at [2].\n</think>\n",  # what opened it was part of the prompt
        ],
    )
    def test_reasoning_is_no_part_of_the_answer_and_is_counted(self, block: str) -> None:
        kept = [("claim", "Apples are red", "a")]
        found = rows(f"{block}Apples are red [1].")
        assert [row for row in found if row[0] != "reasoning"] == kept
        assert [kind for kind, _, _ in found].count("reasoning") == 1

    def test_reasoning_that_never_ends_leaves_nothing(self) -> None:
        assert [d.kind for d in cut("<think>Apples are red [1].").claims] == ["reasoning"]

    def test_what_is_written_about_reasoning_stays(self) -> None:
        assert rows("Put it between `<think>` and `</think>`.") == [
            ("claim", "Put it between `<think>` and `</think>`.", "")
        ]

    @given(
        st.lists(
            st.tuples(st.sampled_from(["Apples", "Pears", "Plums"]), st.sampled_from(["", " [1]", " [9]"])), min_size=1
        )
    )
    def test_a_list_gives_the_same_claims_in_both(self, items: list[tuple[str, str]]) -> None:
        lines = [f"{word} are ripe{mark}" for word, mark in items]
        markdown = "We have seen it.\n\n" + "\n".join(f"- {line}" for line in lines)
        html = "<p>We have seen it.</p><ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>"
        assert rows(html) == rows(markdown)


class TestReadability:
    def test_code_and_formulas_hold_no_references(self) -> None:
        assert rows("The call `f(x)[2]` is slow [1].") == [("claim", "The call `f(x)[2]` is slow", "a")]
        assert read("The call `f(x)[2]` is slow [1].") == ["The call f(x)[2] is slow"]
        assert rows("$x[1] = 2$ [1]") == [("claim", "$x[1] = 2$", "a")]
        assert read("$x[1] = 2$ [1]") == ["$x[1] = 2$"]
        assert claims("Let \\( a_{[1]} \\) be \\[ b[2] \\] here.") == [
            ("Let \\( a_{[1]} \\) be \\[ b[2] \\] here.", "")
        ]

    def test_prices_are_no_formulas(self) -> None:
        assert claims("It costs $5 [1] or $6 [2].") == [("It costs $5", "a"), ("or $6", "b")]

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            ("According to [1], apples are red.", "According to the source, apples are red."),
            ("As stated in [1] and [2], apples are red.", "As stated in the sources, apples are red."),
            ("[3] says that apples are red.", "The source says that apples are red."),
            (
                "Laut [1] sind die Äpfel in diesem Jahr besonders rot.",
                "Laut der Quelle sind die Äpfel in diesem Jahr besonders rot.",
            ),
            ("Apples [1] are red.", "Apples are red."),
            ("Apples (see [1]) are red, and ([2]) sweet.", "Apples are red, and sweet."),
            ("**Apples** are red【1†source】.", "Apples are red"),
            ("In [2019] p was in [0, 1].", "In [2019] p was in [0, 1]."),
        ],
    )
    def test_a_reference_inside_a_sentence_leaves_a_readable_sentence(self, answer: str, text: str) -> None:
        assert read(answer) == [text]

    def test_without_a_style_references_are_text(self) -> None:
        (found,) = load({"kind": "sentences", "citation_style": "none"}, "x").extract_many(
            [Answer("", "Apples [1] are red.")]
        )
        assert [d.hypothesis for d in found.claims] == ["Apples [1] are red."]


class TestKinds:
    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            ("**Refund policy**\n\nGoods can be sent back.", ["heading", "claim"]),
            ("Hello! Backups run at night [1].", ["greeting", "claim"]),
            ("Steps:\n\n1. Open the lid.", ["lead-in", "claim"]),
            ("Backups run at night. (see [1] and [2] for details).", ["claim", "pointer"]),
            ("Backups run at night. (Sources: 1, 2)", ["claim"]),
            ("I could not find this in the documents.", ["refusal"]),
            ("Backups run at night. Which plan do you use?", ["claim", "question"]),
            # What states something is a claim, whatever else it does.
            ("I could not find the fee, but the plan costs ten dollars a month.", ["claim"]),
            ("Sorry, the plan costs ten dollars a month.", ["claim"]),
            ("Yes.", ["claim"]),
            # Other languages of the sample.
            ("Guten Tag! Dazu steht in den Unterlagen nichts.", ["greeting", "refusal"]),
            ("こんにちは！資料には記載がありませんでした。", ["greeting", "refusal"]),
            ("Bonjour ! Le document ne précise pas l'heure.", ["greeting", "refusal"]),
            ("¡Hola! No he encontrado información sobre ello en los documentos.", ["greeting", "refusal"]),
        ],
    )
    def test_each_sentence_has_its_kind(self, answer: str, expected: list[str]) -> None:
        assert [kind for kind, _, _ in rows(answer)] == expected

    def test_only_claims_inherit(self) -> None:
        assert rows("Hello! Backups run at night. They are kept [1].") == [
            ("greeting", "Hello!", ""),
            ("claim", "Backups run at night.", "a"),
            ("claim", "They are kept", "a"),
        ]

    def test_a_lead_in_hands_its_references_down(self) -> None:
        assert rows("The plan includes [1]:\n\n- mail\n- chat [2]") == [
            ("lead-in", "The plan includes", "a"),
            ("claim", "mail", "a"),
            ("claim", "chat", "b"),
        ]

    def test_a_heading_hands_its_references_to_its_section(self) -> None:
        assert claims("## Apples [1]\n\nThey are red.\n\n## Pears\n\nThey are green.") == [
            ("They are red.", "a"),
            ("They are green.", ""),
        ]

    @given(st.text(max_size=150))
    def test_whatever_is_cut_has_a_known_kind_and_something_to_read(self, answer: str) -> None:
        for draft in cut(answer, question="Q?").claims:
            assert draft.kind in KINDS
            assert draft.kind == "reasoning" or draft.hypothesis.strip()
            assert draft.kind != "claim" or draft.hypothesis.endswith(draft.hypothesis.strip())


class TestReferences:
    @pytest.mark.parametrize(
        "mark",
        [
            "(Sources 1 and 2)", "(Sources: 1, 2)", "[Sources 1 and 2]", "[1][2]", "［1］［2］", "\\[1\\]\\[2\\]", "[#1][#2]",
            "【1】【2】", "【2:1†source】【2:2†source】", "^1,2", "<sup>1</sup><sup>2</sup>", "(see [1] and [2])", "(see 1, 2)", "(siehe 1, 2)",
            "（[1]、[2]参照）",
        ],
    )  # fmt: skip
    def test_forms(self, mark: str) -> None:
        assert claims(f"All apples here are red {mark}. Pears are green.") == [
            ("All apples here are red", "a b"),
            ("Pears are green.", ""),
        ]

    @pytest.mark.parametrize(
        "mark", ["[Source 1: Guide 1]", "(see doc-3.md)", "(doc-3.md#intro)", "[doc-3.md]", "(siehe doc-3.md)"]
    )
    def test_names(self, mark: str) -> None:
        chunks = (Chunk("a", "t", doc_id="guides/doc-3.md", title="Guide 1"), Chunk("b", "t", doc_id="doc-4.md"))
        assert claims(f"Apples are red {mark}.", chunks) == [("Apples are red", "a")]

    def test_a_number_that_no_chunk_has_may_be_a_page(self) -> None:
        assert claims("Apples are red (see 40).") == [("Apples are red (see 40).", "")]

    def test_a_caret_behind_a_word_or_a_stop(self) -> None:
        assert claims("Apples are red.^1 Pears are green^2.") == [("Apples are red.", "a"), ("Pears are green", "b")]
        assert claims("It takes 10^6 steps and n^2 space.") == [("It takes 10^6 steps and n^2 space.", "")]

    def test_references_that_are_words_of_their_sentences(self) -> None:
        assert claims("As stated in [1] and [2], apples are red. [3] says pears are green.") == [
            ("As stated in [1] and [2], apples are red.", "a b"),
            ("[3] says pears are green.", "c"),
        ]

    def test_an_index_and_an_interval_are_none(self) -> None:
        assert claims("Ask hosts[0] first and hosts[1] then. It lies in [0, 1].") == [
            ("Ask hosts[0] first and hosts[1] then.", ""),
            ("It lies in [0, 1].", ""),
        ]


class TestNumbers:
    FROM_ZERO = (Chunk("a", "t", rank=0), Chunk("b", "t", rank=1), Chunk("c", "t", rank=2))

    def test_ranks_from_zero_and_answers_from_one(self) -> None:
        """`[3]` of three chunks with ranks 0 to 2 shows that the answer counts from 1, as no `[0]` does otherwise."""
        answer = "Apples are red [1]. Pears are green [3]."
        assert claims(answer, self.FROM_ZERO) == [("Apples are red", "a"), ("Pears are green", "c")]
        assert cut(answer, self.FROM_ZERO).renumbered

    def test_ranks_and_answers_from_zero(self) -> None:
        answer = "Apples are red [0]. Pears are green [1]."
        assert claims(answer, self.FROM_ZERO) == [("Apples are red", "a"), ("Pears are green", "b")]
        assert not cut(answer, self.FROM_ZERO).renumbered

    def test_what_an_answer_leaves_open_most_of_its_application_decide(self) -> None:
        by_app = load_by_app({"kind": "sentences"}, {}, "x", "")
        texts = {"one": "Pears [3].", "two": "Plums [3].", "zero": "Figs [0].", "open": "Apples [1]."}
        answers = [("shop", Answer("", text, self.FROM_ZERO)) for text in texts.values()]
        found = dict(zip(texts, by_app.extract_many(answers), strict=True))
        assert found["open"].claims[0].cited_chunk_ids == ("a",)
        assert found["zero"].claims[0].cited_chunk_ids == ("a",)
        (alone,) = by_app.extract_many([("other", answers[-1][1])])
        assert alone.claims[0].cited_chunk_ids == ("b",)  # by its rank

    def test_positions_where_ids_are_numbers_of_a_database(self) -> None:
        chunks = (Chunk("18342", "t"), Chunk("18351", "t"))
        assert claims("Apples are red [1]. Pears [18351]. Plums [7].", chunks) == [
            ("Apples are red", "18342"),
            ("Pears", "18351"),
            ("Plums", "!7"),
        ]

    def test_ids_where_they_have_as_many_digits(self) -> None:
        assert claims("Apples [2]. Pears [1].", (Chunk("2", "t"), Chunk("4", "t"))) == [
            ("Apples", "2"),
            ("Pears", "!1"),
        ]


class TestContext:
    def test_a_cell_is_read_with_its_head_and_the_label_of_its_row(self) -> None:
        answer = "| Plan | Price | Seats |\n|---|---|---|\n| Pro plan | $20 | 5 [1] |\n| Free | – | ✓ |"
        assert read(answer) == ["Price, Pro plan: $20", "Seats, Pro plan: 5", "Seats, Free: ✓"]
        assert [cited for _, cited in claims(answer)] == ["a", "a", ""]

    def test_a_table_of_one_column_has_no_labels(self) -> None:
        assert read("| Step |\n|---|\n| Open the lid. |") == ["Step: Open the lid."]

    def test_an_item_is_read_with_its_lead_in(self) -> None:
        assert read("Not supported:\n\n- Safari\n- Opera") == ["Not supported: Safari", "Not supported: Opera"]
        assert read("### Not supported\n\n- Safari") == ["Not supported: Safari"]
        assert read("Here are the steps:\n\n1. Open the lid.") == ["Open the lid."]  # it says nothing of them

    def test_inner_items_are_read_with_the_outer_ones(self) -> None:
        assert read("Not supported:\n\n- Browsers:\n  - Safari") == ["Not supported: Browsers: Safari"]

    def test_sentences_of_an_item_keep_its_term(self) -> None:
        assert read("- **Refunds:** You get your money back. It takes five days.") == [
            "Refunds: You get your money back.",
            "Refunds: It takes five days.",
        ]

    def test_a_yes_is_read_with_its_question(self) -> None:
        assert read("Yes. It is free.", question="Is parking free?") == ["Is parking free? Yes.", "It is free."]

    def test_spans_quote_the_answer_without_the_context(self) -> None:
        answer = "Not supported:\n\n- Safari"
        (claim,) = [d for d in cut(answer).claims if d.kind == "claim"]
        assert (answer[claim.start : claim.end], claim.context) == ("Safari", "Not supported")


class TestLanguages:
    @pytest.mark.parametrize(
        ("answer", "language"),
        [
            ("Backups run every night at two o'clock and are kept for ninety days.", "en"),
            ("Die Sicherung läuft jede Nacht um zwei Uhr und wird neunzig Tage lang aufbewahrt.", "de"),
            ("BACKUPS RUN EVERY NIGHT AT TWO O'CLOCK AND ARE KEPT FOR NINETY DAYS.", "en"),  # as it stands: Portuguese
            ("バックアップは毎晩2時に実行され、90日間保存されます。", "ja"),
            ("いいえ、使えません。この機能はまだ提供されていません。", "ja"),
        ],
    )
    def test_each_claim_has_its_language(self, answer: str, language: str) -> None:
        assert {d.language for d in cut(answer).claims} == {language}

    def test_what_is_too_short_to_show_has_that_of_the_whole(self) -> None:
        answer = "Die Sicherung läuft jede Nacht um zwei Uhr morgens.\n\n- Neunzig Tage"
        assert [d.language for d in cut(answer).claims] == ["de", "de"]
        assert [d.language for d in cut("42").claims] == [None]

    def test_an_answer_in_two_languages_has_both(self) -> None:
        answer = (
            "The backup runs every night at two o'clock and takes about an hour.\n\n"
            "バックアップは毎晩2時に実行され、約1時間かかります。データは90日間保存されます。"
        )
        assert [d.language for d in cut(answer).claims] == ["en", "ja", "ja"]


def test_the_answers_cut_by_hand() -> None:
    """All figures of the bench are at the level that was reached, over the 440 answers together."""
    total = sum(
        extraction.compared(ours, extraction.marked(row))
        for style in extraction.read(extraction.ANSWERS).values()
        for row, ours in zip(style, extraction.extract(style), strict=True)
    )
    assert extraction.rates(total).min() >= 0.97


def test_the_answers_cut_by_hand_are_well_formed() -> None:
    """Each part stands in its answer, in order, has a known kind, and cites chunks that are there."""
    for path in sorted(extraction.ANSWERS.glob("*.jsonl")):
        ids = set()
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            assert row["id"] not in ids
            ids.add(row["id"])
            known = {chunk["chunk_id"] for chunk in row["chunks"]}
            at = 0
            for part in row["parts"]:
                at = row["answer"].index(part["text"], at) + len(part["text"])
                assert part["kind"] in KINDS
                assert set(part.get("cites", ())) <= known
        assert len(ids) >= 41
