"""The shipped configs of sources load, and name environment variables, never secrets."""

import pytest
import yaml
from kit.root import ROOT

from tasks import sources
from tasks.core.plugins import kinds

FILES = sorted((ROOT / "configs" / "sources").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_it_loads(path) -> None:
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert sources.load(settings, str(path), path.parent)
    assert all(value.isupper() for key, value in settings.items() if key.endswith("_env"))


def test_every_kind_has_one() -> None:
    shipped = {yaml.safe_load(path.read_text(encoding="utf-8"))["kind"] for path in FILES}
    assert shipped == set(kinds(sources))
