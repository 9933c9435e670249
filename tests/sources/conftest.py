"""What tests of several kinds of sources share."""

from collections.abc import Iterator

import pytest
from kit.stores import postgres


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a PostgreSQL; its database `shop` is shared, so each test makes tables of its own."""
    with postgres.postgres() as address:
        yield address
