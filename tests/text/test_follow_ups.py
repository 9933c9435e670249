"""Which questions need those before them."""

import pytest

from tasks.text.follow_ups import is_follow_up


@pytest.mark.parametrize(
    "question",
    [
        "And for contractors?",
        "What about part-time staff?",
        "how about Friday",
        "Why?",
        "Does it expire in March?",
        "Who pays for them?",
        "Is this the same in Norway?",
        "Since when?",
        "Contractors?",
    ],
)
def test_it_needs_those_before(question: str) -> None:
    assert is_follow_up(question)


@pytest.mark.parametrize(
    "question",
    [
        "How many days of leave do employees get?",
        "Who is the CEO?",
        "Opening hours?",
        "What is the fee for a duplicate card?",
        "",
        "休暇は何日ですか？",
    ],
)
def test_it_stands_on_its_own(question: str) -> None:
    assert not is_follow_up(question)
