"""Declining: sentences that say that nothing answers, those that only look so, and what stands beside it."""

import pytest

from tasks.core.grades import Statement
from tasks.graders import _reading
from tasks.text import declines

DECLINES = (
    "The documents do not say what the lecture room costs.",
    "Unfortunately, the documents contain no answer to this question.",
    "The documents provided do not contain any information on the architect.",
    "None of the documents answers this question.",
    "I could not find any information about the opening hours.",
    "I'm sorry, but I cannot answer this question from the given passages.",
    "There is no information on parking in the sources.",
    "The provided context doesn't specify the dose for children.",
    "No information about the fee is given.",
    "The manual does not say how to reset the device.",
    "The question cannot be answered from the documents.",
    "The answer is not contained in the given documents.",
    "The price isn't stated in any of the passages.",
    "It is not possible to tell from the documents who built the bridge.",
    "The references are silent on this point.",
    "Nothing in the passages says when the bridge was built.",
    "I don't know.",
    "What the trip costs is not mentioned anywhere in the documents.",
    "How long the warranty lasts can't be determined from the manual.",
    "Neither document mentions a deadline.",
    "There is no mention of a discount.",
    "Whether dogs are allowed does not follow from the rules.",
    "There is not enough information to answer.",
    "I was unable to find the figure.",
    "There isn't enough information in the documents.",
    "I find no mention of it.",
    "If you mean the old bridge, no information is available.",
    "The deductible is not given in the policy.",
    "There is no evidence in the documents that he was there.",
    "This question can't be answered with the given passages.",
    "The catalogue does not say when the vase was made.",
    "The catalog does not say when the vase was made.",
)
ANSWERS = (
    "The policy does not cover damage by water.",
    "No fee is charged.",
    "There is no charge for children.",
    "The documents must not be older than three months.",
    "You do not need to bring any documents.",
    "No documents are required for the application.",
    "The card contains no photo.",
    "There is no information desk on the ground floor.",
    "The rules do not allow dogs.",
    "No data is given to third parties.",
    "If the weight is not stated on the label, weigh the parcel.",
    "We cannot give refunds for used tickets.",
    "The leaflet says that the tablets must not be chewed.",
    "It is not possible to renew audiobooks.",
    "The report lists no deaths in 1902.",
    "The file cannot be opened without a password.",
    "The price does not include breakfast.",
    "It was not found until 1950.",
    "The information is not passed on to anyone.",
    "Damage by flood is not covered by the policy.",
    "Children are not listed on the policy.",
    "The fee is not included in the price list.",
    "Documents do not have to be notarised.",
    "You can pay later; I do not have to sign anything.",
    "None of the documents may leave the building.",
    "Nothing in the contract prevents a sale.",
    "The reports contain no personal information.",
    "The policy does not provide any details to third parties.",
    "Human resources do not provide payslips by post.",
    "The material contains no lead.",
    "There is no evidence of a link between the vaccine and fever.",
    "It is not known to cause fever.",
    "Prices are not stated in euros.",
    "The origin of the stone remains unclear.",
    "It is not possible to determine the sex before week 12.",
    "Applications with insufficient information are rejected.",
    "If there is not enough information, the claim is rejected.",
    "Without further information, the request is closed after 30 days.",
)


@pytest.mark.parametrize("sentence", DECLINES)
def test_what_says_that_nothing_answers_declines(sentence: str) -> None:
    found = declines.declined(sentence)
    assert found is not None
    assert _reading.read([Statement(sentence)]).assertions == ()  # whatever is left of it states nothing


@pytest.mark.parametrize("sentence", ANSWERS)
def test_what_denies_something_answers(sentence: str) -> None:
    assert declines.declined(sentence) is None
    assert len(_reading.read([Statement(sentence, (1,))]).assertions) == 1


@pytest.mark.parametrize(("sentence", "rest"), [
    ("The documents do not say what it costs, but clubs can hire it in the evening.", "Clubs can hire it in the evening"),
    ("Clubs can hire the room, but the documents do not say what it costs.", "Clubs can hire the room"),
    ("The passages do not name the architect; they only state that it dates from 1900.", "It dates from 1900"),
])  # fmt: skip
def test_what_is_stated_beside_it_is_a_statement_of_its_own(sentence: str, rest: str) -> None:
    found = _reading.read([Statement(sentence, (2,))])
    assert [(one.text, one.cited) for one in found.assertions] == [(rest, (2,))]
    assert found.declined == (sentence,)


@pytest.mark.parametrize(("sentence", "cited", "before"), [
    ("Clubs can hire the room, but the documents do not say what it costs.", (2,), 1),
    ("You asked what it costs, but the documents do not say.", (), 0),
    ("Yes, but the documents do not say what it costs.", (2,), 0),
    ("The documents do not say what it costs, but clubs can hire the room.", (2,), 0),
])  # fmt: skip
def test_what_is_stated_and_cited_first_stands_before(sentence: str, cited: tuple[int, ...], before: int) -> None:
    assert _reading.read([Statement(sentence, cited), Statement("It is big.", (2,))]).before == before


@pytest.mark.parametrize("sentence", ["They do say that tea is hot.", "According to the documents, tea is hot."])
def test_who_says_it_is_no_part_of_a_statement(sentence: str) -> None:
    assert declines.unattributed(sentence) == "Tea is hot."


@pytest.mark.parametrize("nothing", ["Yes.", "These rules apply:", "I hope this helps!", "Is there anything else?"])
def test_what_states_nothing_is_no_statement(nothing: str) -> None:
    assert _reading.read([Statement(nothing), Statement("Tea is hot.", (1,))]).assertions[0].number == 2
