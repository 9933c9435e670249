"""Send messages through Apprise (Slack, e-mail, webhooks and others) to URLs from an environment variable or a file.

URLs contain secrets: they are read only when a message is sent, and never included in messages, logs or errors. Left
out: the text and the time of messages (`flows/alerts.py`).
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def send(place: str, title: str, body: str) -> str | None:
    """Send a message to every URL of a place.

    Args:
        place: `env:NAME` or `file:PATH`. The variable or file contains Apprise URLs separated by white space.
        body: Markdown.

    Returns:
        What went wrong, without any URL; None if the message was sent to all URLs.
    """
    urls = _urls(place)
    if isinstance(urls, str):
        return urls
    from apprise import Apprise, AppriseAsset, NotifyFormat, NotifyType  # noqa: PLC0415 - seldom needed

    client = Apprise(asset=AppriseAsset(app_id="Leadline", app_desc="Leadline", app_url="", async_mode=False))
    with _silent():
        for number, url in enumerate(urls, 1):
            if not client.add(url):
                return f"URL {number} of {len(urls)} is of no service that Apprise knows"
        try:
            took = client.notify(
                body=body, title=title, notify_type=NotifyType.WARNING, body_format=NotifyFormat.MARKDOWN
            )
        except Exception as error:
            return f"the service failed ({type(error).__name__})"
    return None if took else "the service did not take it, or could not be reached"


def _urls(place: str) -> list[str] | str:
    """Return the URLs of a place, or why there are none."""
    kind, name = place.split(":", 1)
    if kind == "env":
        text = os.environ.get(name, "")
    else:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return f"the file can't be read ({type(error).__name__})"
    return text.split() or ("the variable is not set" if kind == "env" else "the file is empty")


@contextmanager
def _silent() -> Iterator[None]:
    """Silence Apprise's log, which quotes hosts and replies."""
    log = logging.getLogger("apprise")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)
