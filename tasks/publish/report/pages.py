"""Templates into HTML. Other modules gather what a page shows; `templates/` has its looks.

Texts of traces are data: everything is escaped, a missing variable is an error, and null is shown as "n/a".
"""

import json
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tasks.publish.report import text

TEMPLATES = Path(__file__).with_name("templates")
# In a script element these could end it, begin a comment, or end a line of a script.
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
    """The HTML of `templates/<template>.html.j2`."""
    return _environment().get_template(f"{template}.html.j2").render(variables)


def style() -> str:
    """The style sheet."""
    return (TEMPLATES / "style.css").read_text(encoding="utf-8")


def script_data(value: object) -> str:
    """JSON that can stand in a script element and in a script."""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for c in UNSAFE:
        data = data.replace(c, f"\\u{ord(c):04x}")
    return data


def faithful(value: object) -> object:
    """A value on its way into a page: null is "n/a", and a browser gets to see each character of a text.

    HTML would turn a carriage return into a newline and drop U+0000, and offsets would no longer fit the answer.
    """
    if value is None:
        return text.NOT_APPLICABLE
    if type(value) is str and ("\r" in value or "\0" in value):
        escaped = str(escape(value.replace("\0", "\ufffd")))
        return Markup(escaped.replace("\r", "&#13;"))  # noqa: S704 (escaped one line above)
    return value


@cache
def badge(label: str) -> Markup:
    """A label with its icon and color. There are few of them, and hundreds on a page."""
    icon = Markup('<svg class="i" aria-hidden="true"><use href="#i-{}"/></svg>').format(label)
    return Markup('<span class="badge v-{}">{}{}</span>').format(label, icon, words(label))


def words(name: str) -> str:
    """The name of a label, pattern or status in plain words."""
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
