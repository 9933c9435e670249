"""Verbs of the command line.

Modules are imported when their verb is called, help pages show no types, and commands in error messages get the
user's `--config`.
"""

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from tasks.core.errors import LeadlineError
from tasks.core.paths import config_option

# A command in a message. Excluded: holders of a lake's lock, and commands that have --config or don't take it.
COMMAND = re.compile(
    r"(?<!locked by )\bleadline (?!(?:init|articles|sources)\b)(?:(?:judges|review) )?[a-z]+(?:-[a-z]+)*\b"
    r"(?! (?:-c|--config|--help)\b)"
)
PLACEHOLDERS = {bool: "", int: "N", float: "NUMBER", Path: "FILE"}


class Verb(TyperCommand):
    """A verb (subcommand)."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return options and arguments without types."""
        return _untyped(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the verb. Add the user's `--config` to commands in error messages."""
        try:
            return super().invoke(ctx)
        except LeadlineError as error:
            error.args = (with_config(str(error), ctx.params.get("config")),)
            raise


def with_config(text: str, config: Path | None) -> str:
    """Add `--config` to the commands in a message, unless the config is the default."""
    option = config_option(config) if config else ""
    return COMMAND.sub(lambda found: found[0] + option, text)


class Verbs(TyperGroup):
    """A group of verbs. A verb's module is imported only when the verb is called, not to list verbs.

    Attributes:
        verbs: `module:function` or a nested group, by name.

    Args:
        panels: Heading on the help page, by name of the verb.
    """

    def __init__(
        self,
        name: str,
        text: str,
        verbs: "Mapping[str, str | Verbs]",
        panels: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(name=name, help=text, no_args_is_help=True, **more)
        self.verbs = verbs
        self._panels = panels or {}
        self._listing = False

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the interface
        """Names in the order of the help page."""
        return list(self.verbs)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the interface
        """Return a verb; for the help page, only with name and text."""
        found = self.verbs.get(cmd_name)
        panel = self._panels.get(cmd_name)
        if found is None or isinstance(found, Verbs):
            if found:
                found.rich_help_panel = panel
            return found
        module, _, function = found.partition(":")
        if self._listing:
            return TyperCommand(cmd_name, help=_docstring(module, function), rich_help_panel=panel)
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        with _loading(f"leadline {cmd_name}"):
            app.command(cmd_name, cls=Verb)(getattr(importlib.import_module(module), function))
        return typer.main.get_command(app)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return options without types."""
        return _untyped(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


def _docstring(module: str, function: str) -> str | None:
    """Docstring of a module's function, read from the source without importing it."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return ast.get_docstring(next(found))


def _untyped(params: list[Any]) -> list[Any]:
    """Replace the types of options with placeholders, and those of arguments with their names."""
    for param in params:
        if isinstance(param, TyperArgument):
            param.metavar = param.metavar or param.name.upper()
            plain = {"display_type_rich": lambda **_: None, "_usage_display_name": lambda p=param: _usage(p)}
            for name, shown in plain.items():
                setattr(param, name, shown)
        elif param.metavar is None:
            kind = bool if param.is_flag else param.type_descriptor.annotation
            param.metavar = PLACEHOLDERS.get(kind, param.opts[0].removeprefix("--").upper())
        param.min = param.max = None  # hide the range; errors for values out of range show it
    return params


def _usage(param: TyperArgument) -> str:
    name = f"{param.metavar}{'' if param.nargs == 1 else '…'}"
    return name if param.required else f"[{name}]"


@contextmanager
def _loading(what: str) -> Iterator[None]:
    """Show a message in the terminal while libraries are imported, which can take seconds."""
    shown = sys.stderr.isatty()
    if shown:
        sys.stderr.write(f"{what} …")
        sys.stderr.flush()
    try:
        yield
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
