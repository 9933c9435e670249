"""Errors: the exit code of each, and what a config error says."""

import pytest

from tasks.core import errors


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.LeadlineError, 1), (errors.SourceError, 1), (errors.EngineError, 1), (errors.ConnectionLostError, 1),
        (errors.UsageError, 2), (errors.ConfigError, 2), (errors.DataError, 3), (errors.BusyError, 4), (errors.StorageError, 1), (errors.ChangedError, 1),
    ],
)  # fmt: skip
def test_exit_codes_are_those_of_the_manual(kind: type[errors.LeadlineError], code: int) -> None:
    assert kind.exit_code == code
    assert issubclass(kind, errors.LeadlineError)


def test_only_what_may_pass_by_itself_is_worth_another_try() -> None:
    every = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, errors.LeadlineError)]
    assert [e for e in every if e.transient] == [errors.StorageError, errors.ChangedError, errors.ConnectionLostError]


def test_a_config_error_says_where_what_and_how_to_mend_it() -> None:
    assert str(errors.ConfigError("a.yaml", "b.c", "is 3", "Write 2.")) == "a.yaml: b.c is 3. Write 2."
    assert str(errors.ConfigError("a.yaml", "", "is empty", "Fill it.")) == "a.yaml is empty. Fill it."
