"""Render templates to HTML. Other modules gather the data; `templates/` contains the templates and the style sheet.

All values are escaped, a missing variable is an error, and null is shown as "n/a".
"""

import json
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tasks.publish.report import text

TEMPLATES = Path(__file__).with_name("templates")
# These characters could end a script element, start a comment, or end a line of a script.
UNSAFE = "<>&\u2028\u2029"
WORDS = {
    "partially_supported": "partly supported",
    "na": text.NOT_APPLICABLE,
    "none": "no diagnosis",
    "citation_drift": "citation drift",
    "dangling_citation": "dangling citation",
    "joint_cited": "joint, cited",
    "found_true": "what was found true",
    "sent": "would pass",
    "retrieved_not_cited": "retrieved but not cited",
}


def render(template: str, **variables: object) -> str:
    """Render `templates/<template>.html.j2`."""
    return _environment().get_template(f"{template}.html.j2").render(variables)


def style() -> str:
    """The style sheet."""
    return (TEMPLATES / "style.css").read_text(encoding="utf-8")


def script_data(value: object) -> str:
    """Encode a value as JSON that is safe in a script element and in a script."""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for c in UNSAFE:
        data = data.replace(c, f"\\u{ord(c):04x}")
    return data


def faithful(value: object) -> object:
    """Escape a value for a page; null becomes "n/a". Browsers show every character of a text.

    Otherwise, HTML parsers would turn a carriage return into a newline and drop U+0000, and offsets into the answer
    would be wrong.
    """
    if value is None:
        return text.NOT_APPLICABLE
    if type(value) is str and ("\r" in value or "\0" in value):
        escaped = str(escape(value.replace("\0", "\ufffd")))
        return Markup(escaped.replace("\r", "&#13;"))  # noqa: S704 (escaped one line above)
    return value


@cache
def badge(label: str) -> Markup:
    """A label with its icon and color. Cached, since a page has hundreds of them."""
    icon = Markup('<svg class="i" aria-hidden="true"><use href="#i-{}"/></svg>').format(label)
    return Markup('<span class="badge v-{}">{}{}</span>').format(label, icon, words(label))


def words(name: str) -> str:
    """Display name of a label, pattern or status."""
    return WORDS.get(name, name.replace("_", " "))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=faithful,
        auto_reload=False,
    )
    environment.globals.update(plural=text.plural, badge=badge)
    environment.filters.update(
        num=text.number,
        pct=text.percent,
        count=text.count,
        moment=text.moment,
        duration=text.duration,
        slug=text.slug,
        excerpt=text.excerpt,
        words=words,
    )
    return environment
