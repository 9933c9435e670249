"""The generated pages are those that the code says, and every table, column and key is described."""

from pathlib import Path

import pytest
from conftest import script
from kit.root import ROOT

from tasks import extractors, graders, judges, sources
from tasks.core.config import Nightly
from tasks.core.plugins import kinds
from tasks.core.schemas import TABLES
from tasks.engines.transformers_cpu import EmbedderConfig

docs = script("generate_docs")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
MODELS = sorted(
    {
        m
        for top in (
            Nightly,
            EmbedderConfig,  # recipe.relevance: a mapping, so that core need not know the engine
            *(
                module.Config
                for package in (sources, extractors, judges, graders)
                for module in kinds(package).values()
            ),
        )
        for m in docs.nested(top)
    },
    key=lambda m: f"{m.__module__}.{m.__name__}",
)


@pytest.mark.parametrize("path", docs.pages(), ids=lambda p: p.name)
def test_committed_page_is_the_generated_one(path: Path) -> None:
    """The expected value is the generator's: that is what makes a page a generated one."""
    assert path.read_text(encoding="utf-8") == docs.pages()[path], "run `make docs`"


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda t: t.name)
def test_every_column_is_described(table) -> None:
    assert table.grain
    assert [f.name for f in table.schema if not (f.metadata or {}).get(b"doc")] == []


@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "sql" / "views").glob("*.sql")))
def test_every_view_says_what_it_is_and_its_columns_are_described(name: str) -> None:
    assert set(docs.view_header(name)) == {"grain", "inputs"}
    page = docs.tables_page()
    section = page[page.index(f"### {name}\n") :].split("\n### ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []


def test_page_of_tables_has_the_types_that_duckdb_gives() -> None:
    """Spot checks by hand: a plain column, a list, a timestamp with its zone."""
    page = docs.tables_page()
    for line in (
        "| `date` | `DATE` |  | Day of the trace's timestamp, UTC. |",
        "| `deciding_chunk_ids` | `VARCHAR[]` |  |",
        "| `timestamp` | `TIMESTAMP WITH TIME ZONE` |  | When the question was answered. |",
        "| `p_supported` | `DOUBLE` | null |",
    ):
        assert line in page


@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{m.__module__}.{m.__name__}")
def test_every_key_is_listed_and_described(model) -> None:
    assert model in docs.models_in(CONFIGURATION), (
        f"docs/configuration.md lacks the keys of {model.__module__}.{model.__name__}. Add a section with the lines "
        f"`<!-- keys of {model.__module__}.{model.__name__} -->` and `<!-- end -->`, then run `make docs`."
    )
    assert [name for name in model.model_fields if not docs.meaning(model, name)] == [], (
        "Describe the keys in the section `Attributes:` of the model's docstring."
    )


def test_descriptions_kept_beside_the_code_are_needed() -> None:
    """A meaning that the model's own docstring has come to tell, or of a key that is gone, is to be deleted."""
    models = {m.__name__: m for m in MODELS}
    views = {p.stem for p in (ROOT / "sql" / "views").glob("*.sql")}
    for owner, name in (key.split(".") for key in docs.MEANINGS):
        assert owner in models or owner in views, f"{owner}.{name}"
        if owner in models:
            assert name in models[owner].model_fields, f"{owner}.{name} is no key"
            assert name not in docs.attributes(models[owner]), f"{owner}.{name} is described in its docstring"


def test_attributes_are_read_over_several_lines_and_from_the_models_built_on() -> None:
    class Base(docs.BaseModel):
        """What.

        Attributes:
            first: One line
                and another. None means never (docs/methods.md#labels).
        """

        first: int

    class More(Base):
        """More.

        Attributes:
            second: Two: with a colon.

        Raises:
            third: Not an attribute.
        """

        second: int

    assert docs.attributes(More) == {
        "first": "One line and another. `null` means never.",
        "second": "Two: with a colon.",
    }


def test_pages_do_not_point_where_a_user_cannot_follow() -> None:
    for path, text in docs.pages().items():
        assert "METHODS" not in text, path
