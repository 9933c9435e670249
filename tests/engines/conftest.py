"""Tiny classifiers, made once for all tests of a file."""

import pytest


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Folder of a tiny classifier of a family, made on first use."""
    from tiny_classifiers import make  # noqa: PLC0415 - imports torch

    made = {}

    def of(family):
        if family not in made:
            made[family] = make(tmp_path_factory.mktemp(family), family)
        return made[family]

    return of
