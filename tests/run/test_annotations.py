"""Files of right sources: their rows; a bad row is reported and no good row is lost."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.errors import ConfigError
from tasks.run.annotations import Annotations, load, normalized, of_traces

SECRET = "What does Mrs Smith earn?"


def file(root: Path, content: str | bytes, name: str = "gold.jsonl") -> Path:
    path = root / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(root: Path, content: str | bytes, name: str = "gold.jsonl") -> Annotations:
    return load(file(root, content, name), "nightly.yaml", "recipe.grace.annotations")


class TestJsonLines:
    def test_rows_of_one_question_are_one(self, tmp_path: Path) -> None:
        found = read(
            tmp_path,
            '{"question": "How  hot?", "gold_ids": ["a", "b"], "by": "Ann"}\n\n{"gold_ids": ["c", "a"], "question": " HOW HOT? "}\n',
        )
        assert found == Annotations({"how hot?": ("a", "b", "c")})

    def test_an_empty_list_says_that_there_is_none(self, tmp_path: Path) -> None:
        assert read(tmp_path, '{"question": "q", "gold_ids": []}') == Annotations({"q": ()})

    @pytest.mark.parametrize(
        ("line", "wrong"),
        [
            (b"{", "not JSON"),
            (b'{"question": "gr\xfcn", "gold_ids": ["a"]}', "not JSON"),
            (b'{"question": "\\ud800", "gold_ids": ["a"]}', "not JSON"),
            (b'["q", "a"]', "not {question: text, gold_ids: [text, …]}"),
            (b'{"question": "q"}', "not {question: text, gold_ids: [text, …]}"),
            (b'{"question": "q", "gold_ids": "a"}', "not {question: text, gold_ids: [text, …]}"),
            (b'{"question": "q", "gold_ids": [1]}', "not {question: text, gold_ids: [text, …]}"),
            (b'{"question": " ", "gold_ids": ["a"]}', "empty question"),
            (b'{"question": "q", "gold_ids": ["a", " "]}', "empty id in gold_ids"),
        ],
    )
    def test_a_bad_row_is_named_by_its_line_and_the_good_ones_stay(
        self, tmp_path: Path, line: bytes, wrong: str
    ) -> None:
        good = b'{"question": "before", "gold_ids": ["a"]}\n'
        found = read(tmp_path, good + b"\n" + line + b"\n" + good.replace(b"before", b"after"))
        assert set(found.gold) == {"before", "after"}
        assert found.notes == (f"gold.jsonl: 1 of 3 annotations can't be used and are left out (line 3: {wrong}).",)

    def test_no_text_of_the_file_gets_into_a_note(self, tmp_path: Path) -> None:
        rows = [{"question": SECRET, "gold_ids": [7]}, {"question": SECRET, "gold_ids": SECRET}]
        (note,) = read(tmp_path, "\n".join(map(json.dumps, rows)) + f"\n{SECRET}\n").notes
        assert "3 of 3" in note
        assert "Smith" not in note

    def test_only_the_first_bad_lines_are_named_and_all_are_counted(self, tmp_path: Path) -> None:
        (note,) = read(tmp_path, "x\n" * 20).notes
        assert "20 of 20" in note
        assert note.endswith("8: not JSON; …).")

    def test_a_file_without_annotations_is_reported(self, tmp_path: Path) -> None:
        assert read(tmp_path, "\n").notes == ("gold.jsonl: it contains no annotations.",)


class TestCsv:
    def test_ids_stand_apart_by_semicolons_and_columns_in_any_order(self, tmp_path: Path) -> None:
        content = '\ufeffby,Gold_ids,question\r\nAnn,a; b,"How hot, really?"\r\n\r\nBob,c,"Two\r\nlines"\r\n'
        assert read(tmp_path, content, "gold.csv") == Annotations({"how hot, really?": ("a", "b"), "two lines": ("c",)})

    @pytest.mark.parametrize(
        ("row", "wrong"),
        [
            ("q", "1 cells, not 2"),
            ("q,a,b", "3 cells, not 2"),
            ("q,", "no gold_ids"),
            (",a", "empty question"),
            ("q,a;;b", "empty id in gold_ids"),
            ("gr\udcfcn,a", "not UTF-8"),
            ("q" * 200_000 + ",a", "not CSV"),  # longer than the reader takes
        ],
    )
    def test_a_bad_row_is_named_by_its_line_and_the_good_ones_stay(self, tmp_path: Path, row: str, wrong: str) -> None:
        content = f"question,gold_ids\nbefore,a\n{row}\nafter,a\n".encode("utf-8", "surrogateescape")
        found = read(tmp_path, content, "gold.csv")
        assert set(found.gold) == {"before", "after"}
        assert found.notes == (f"gold.csv: 1 of 3 annotations can't be used and are left out (line 3: {wrong}).",)

    def test_a_quote_that_is_never_closed_is_reported_with_the_lines_that_it_swallowed(self, tmp_path: Path) -> None:
        found = read(tmp_path, 'question,gold_ids\nbefore,a\n"open,a\nlost,a\nlost too,a\n', "gold.csv")
        assert set(found.gold) == {"before"}
        assert "(line 3–5: 1 cells, not 2)" in found.notes[0]

    @pytest.mark.parametrize(("content", "missing"), [("question\nq\n", "gold_ids"), ("", "question and no column gold_ids")])  # fmt: skip
    def test_a_file_without_the_columns_is_the_users_mistake(self, tmp_path: Path, content: str, missing: str) -> None:
        with pytest.raises(ConfigError, match=rf"gold\.csv has no column {missing}\. Begin it with"):
            read(tmp_path, content, "gold.csv")


def test_a_file_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nightly\.yaml: recipe\.grace\.annotations names .*none\.csv.*No such file"):
        load(tmp_path / "none.csv", "nightly.yaml", "recipe.grace.annotations")


def test_no_file_is_no_annotation() -> None:
    assert load(None, "nightly.yaml", "recipe.grace.annotations") == Annotations()


def test_the_version_shows_what_is_annotated_and_nothing_else(tmp_path: Path) -> None:
    a, b, bad = '{"question": "a", "gold_ids": ["x", "y"]}\n', '{"question": "b", "gold_ids": ["x"]}\n', "{\n"
    same = {read(tmp_path, content).version for content in (a + b, b + bad + a, a + a.replace('"x", "y"', '"y"') + b)}
    assert len(same) == 1
    others = (a, b, "", a + b.replace('"x"', '"z"'), a + b.replace('"b"', '"c"'), a + b.replace('["x"]', "[]"))
    assert len(same | {read(tmp_path, content).version for content in others}) == 1 + len(others)


@given(st.text(max_size=30), st.sampled_from([" ", "\n", "\t ", "\u3000", "\u00a0"]))
def test_a_question_is_the_same_whatever_its_spaces(question: str, space: str) -> None:
    assert normalized(space + question.replace(" ", space * 2)) == normalized(question)
    assert normalized(normalized(question)) == normalized(question)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("STRASSE", "Straße", True), ("cafe\u0301", "café", True), ("ab", "a b", False), ("tea?", "tea", False)],
)
def test_case_and_spaces_alone_make_no_difference(one: str, other: str, same: bool) -> None:
    assert (normalized(one) == normalized(other)) is same


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=20).filter(str.strip),
        st.lists(st.from_regex(r"[a-z#.]{1,8}", fullmatch=True), min_size=1, max_size=3, unique=True),
        max_size=5,
    )
)
def test_both_formats_say_the_same(tmp_path_factory: pytest.TempPathFactory, gold: dict[str, list[str]]) -> None:
    root = tmp_path_factory.mktemp("formats")
    table = io.StringIO()
    csv.writer(table).writerows([("question", "gold_ids"), *((q, ";".join(ids)) for q, ids in gold.items())])
    lines = "".join(json.dumps({"question": q, "gold_ids": ids}, ensure_ascii=False) + "\n" for q, ids in gold.items())
    assert read(root, table.getvalue(), "gold.csv").gold == read(root, lines).gold
    assert not gold or len(read(root, lines).gold) == len({normalized(q) for q in gold})


def test_traces_that_ask_an_annotated_question() -> None:
    annotations = Annotations({"how hot?": ("a",), "why?": ()})
    found = of_traces(annotations, [("1", "How  Hot?"), ("2", "When?"), ("3", "why?")])
    assert found == [{"trace_id": "1", "gold_ids": ["a"]}, {"trace_id": "3", "gold_ids": []}]
