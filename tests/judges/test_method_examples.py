"""The examples of the specification, judged by the judge that ships.

Section 3 has a table of claims and labels, section 5 the apples. The subscription is the worked example of section 4
(a supported, a misused and a partially supported claim), put into words here.
"""

import pytest
from kit.root import ROOT

from tasks import judges
from tasks.core.keys import request_key
from tasks.core.types import Request

SHIPPED = ROOT / "configs/judges/nli.yaml"
ORDER = "Order #4521 was canceled by the customer on March 14, 2024."
CANCELED = "The customer canceled on March 14, 2024."
RENEWED = "The subscription was renewed on 2 May 2024 for one year at the price of 120 euros."
SUPPORT = "Support answers tickets on working days between 8 and 18 o'clock."
APPLES = (
    "In a trial with 40 adults, eating two apples a day for eight weeks was associated with lower LDL cholesterol. "
    "No other measure was taken."
)
FOUND_TRUE = "Eating two apples a day was associated with lower LDL cholesterol. Apples contain fibre and vitamin C."
EXAMPLES = {
    "date in another format": (ORDER, "The customer canceled on 2024-03-14.", {"supported"}),
    "vague": ("Cancellations spiked in Q1.", "The customer canceled in March.", {"unsupported"}),
    "reason not in source": (CANCELED, "The customer canceled because of pricing.", {"unsupported"}),
    "negated": (ORDER, "The customer did not cancel.", {"contradicted"}),
    "subscription, supported": (RENEWED, "The subscription was renewed on May 2, 2024.", {"supported"}),
    "subscription, cites the wrong chunk": (SUPPORT, "The renewal costs 120 euros.", {"unsupported"}),
    "subscription, half of it": (
        RENEWED,
        "The subscription was renewed for one year, and the customer received a discount.",
        {"partially_supported"},
    ),
    "apples, another measure": (APPLES, "Eating apples can reduce blood pressure.", {"unsupported", "contradicted"}),
    "apples, what the source says": (APPLES, "Eating apples is associated with lower LDL cholesterol.", {"supported"}),
    "apples, the conclusion": (
        FOUND_TRUE,
        "In conclusion, apples make for a healthy and happy life.",
        {"unsupported", "partially_supported"},
    ),
}
MISSED = {  # named in bench/README.md
    "subscription, half of it": "this judge never says partially_supported",
}


@pytest.fixture(scope="module")
def shipped():
    made = judges.load(SHIPPED)
    yield made
    made.close()


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.xfail(strict=True, reason=MISSED[n])) if n in MISSED else n for n in EXAMPLES],
)
def test_the_specification_s_example_gets_its_label(shipped, name):
    premise, hypothesis, labels = EXAMPLES[name]
    (verdict,) = shipped.judge([Request(request_key(premise, hypothesis), premise, hypothesis)])
    assert verdict.label in labels, verdict
