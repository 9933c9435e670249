"""Words, numbers and names, by examples reasoned beside them and by invariants."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.text.overlap import lexical, names, normalize, numbers, read, spelt_numbers, stem, words

TEXT = st.text(alphabet=st.sampled_from("ab Z1.,! ?\n日本。é'’-"), max_size=120)


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("1,000", [{"1000"}]),
        ("1000", [{"1000"}]),
        ("1.000", [{"1", "1000"}]),  # 1 with three decimals, or a German thousand
        ("3,5", [{"3.5"}]),
        ("1,234.56", [{"1234.56"}]),
        ("1.234,56", [{"1234.56"}]),
        ("12,345,678", [{"12345678"}]),
        ("14%", [{"14"}]),
        ("$4.50", [{"4.5"}]),
        ("007", [{"7"}]),
        ("2024-03-14", [{"2024"}, {"3"}, {"14"}]),
        ("14.03.2024", [{"14", "3", "2024"}]),
        ("1.5 million", [{"1.5", "1500000"}]),
        ("10k", [{"10", "10000"}]),
        ("Q1", [{"1"}]),
        ("３５", [{"35"}]),  # full-width digits
        ("none", []),
    ],
)
def test_numbers_by_their_readings(text, readings):
    assert numbers(normalize(text)) == [frozenset(r) for r in readings]


@pytest.mark.parametrize(
    ("premise", "claim", "missing"),
    [
        ("on March 14, 2024", "on 2024-03-14", 0),
        ("costs 1,000 dollars", "costs 1000 dollars", 0),
        ("1.5 million people", "1,500,000 people", 0),
        ("three patients", "3 patients", 0),
        ("14 percent", "14%", 0),
        ("14 percent", "15%", 1),
        ("14 percent", "15 and 15 and 16", 2),  # each number once
        ("", "1 2 3 4 5 6", 3),  # no more than three count
        ("14 percent", "no figure", 0),
    ],
)
def test_missing_numbers(premise, claim, missing):
    assert lexical(read(premise), read(claim))["missing_numbers"] == missing


def test_spelt_numbers_are_evidence_only():
    assert spelt_numbers("Three cats in May") == {"3", "5"}
    # A claim's words are no figures: "one" is seldom a count.
    assert lexical(read("cats"), read("one of the cats"))["missing_numbers"] == 0


def test_words_of_scripts_without_spaces_are_pairs_of_characters():
    assert words("日本語") == ["日本", "本語"]
    assert words("語") == ["語"]
    assert words("API を使う") == ["api", "を使", "使う"]


def test_combining_marks_stay_in_their_word():
    assert words("हिन्दी भाषा") == ["हिन्दी", "भाषा"]


def test_overlap_in_japanese_sees_shared_and_missing_text():
    premise = read("顧客は三月十四日に注文を取り消した。")
    same = lexical(premise, read("顧客は注文を取り消した"))["overlap"]
    other = lexical(premise, read("猫は眠る"))["overlap"]
    assert same > 0.5 > other


def test_overlap_is_the_share_of_the_claims_content_words():
    # Content words: cats, sleep, baskets ("in" is a stop word); the premise has the first two.
    found = lexical(read("Cats quietly sleep."), read("Cats sleep in baskets"))
    assert found["overlap"] == pytest.approx(2 / 3)
    # Pairs: (cat, sleep), (sleep, basket); the premise has (cat, quiet), (quiet, sleep).
    assert found["bigrams"] == 0


@pytest.mark.parametrize(
    ("word", "expected"),
    [("customer's", "customer"), ("canceled", "cancel"), ("reading", "read"), ("red", "red"), ("bus", "bus")],
)
def test_stem_keeps_four_letters(word, expected):
    assert stem(word) == expected


def test_names_are_capitalised_words_inside_a_sentence():
    assert names("The customer met Anna in Rome. They left with IBM") == {"anna", "rome", "ibm"}
    assert names("A heading In Title Case Of The Thing") >= {"title", "case"}
    assert not names("A heading In The Of") & {"in", "the", "of"}


@given(TEXT)
def test_a_text_lacks_nothing_of_itself(text):
    side = read(text)
    found = lexical(side, side)
    assert found["missing_numbers"] == found["missing_names"] == 0
    assert found["overlap"] == (1 if side.bag else 0)
    assert found["bigrams"] == (1 if side.pairs else 0)


@given(TEXT, TEXT, TEXT)
def test_more_evidence_never_lowers_what_is_shared(premise, more, claim):
    hypothesis = read(claim)
    less, rest = lexical(read(premise), hypothesis), lexical(read(f"{premise}\n{more}"), hypothesis)
    assert rest["overlap"] >= less["overlap"]
    assert rest["bigrams"] >= less["bigrams"]
    assert rest["missing_numbers"] <= less["missing_numbers"]
    assert rest["missing_names"] <= less["missing_names"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_have_features_in_range(premise, claim):
    found = lexical(read(premise), read(claim))
    assert 0 <= found["overlap"] <= 1
    assert 0 <= found["bigrams"] <= 1
    assert found["missing_numbers"] in range(4)
    assert found["missing_names"] in range(4)
