"""Probabilities of labels from tokens, however a tokenizer cuts the reply."""

import json
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tasks.engines.generator import Reply, Token
from tasks.judges._labels import distribution

LABELS = ("supported", "partially_supported", "unsupported", "contradicted")
LOG = math.log


def reply(*tokens):
    """A reply of tokens (text, {alternative: probability}); a bare text was the only choice."""
    made = [(t, {t: 1.0}) if isinstance(t, str) else t for t in tokens]
    parts = tuple(Token(text, tuple((a, LOG(p)) for a, p in top.items())) for text, top in made)
    return Reply("".join(t.text for t in parts), "stop", parts)


def of(*tokens, values=LABELS):
    return distribution(reply(*tokens), "label", values)


def test_alternatives_are_credited_to_the_label_that_each_begins():
    alternatives = {"supported": 0.6, "un": 0.2, "unsupported": 0.05, "contr": 0.1, "part": 0.05}
    found = of('{"', "label", '":"', ("supported", alternatives), '","', "passages", '":[1]}')
    assert found == pytest.approx(dict(zip(LABELS, [0.6, 0.05, 0.25, 0.1], strict=True)))


def test_what_begins_no_label_is_left_out_and_the_rest_made_whole():
    found = of('{"label":"', ("supported", {"supported": 0.5, "un": 0.25, "yes": 0.2, " supported": 0.05}), '"}')
    assert found == pytest.approx(dict(zip(LABELS, [2 / 3, 0, 1 / 3, 0], strict=True)))


def test_a_token_may_begin_before_the_label():
    found = of('{"label', ('":"s', {'":"s': 0.6, '":"un': 0.2, '":"': 0.1, '": "': 0.1}), 'upported"}')
    # 0.2 begins no label of its own: 0.6 and 0.2 are what is left.
    assert found == pytest.approx(dict(zip(LABELS, [0.75, 0, 0.25, 0], strict=True)))


def test_a_token_may_go_on_beyond_the_label():
    top = {'supported","': 0.7, 'contradicted","': 0.1, "contradicted": 0.2, 'unsupporting"': 0.3}
    found = of('{"label":"', ('supported","', top), 'passages":[1]}')
    assert found == pytest.approx(dict(zip(LABELS, [0.7, 0, 0, 0.3], strict=True)))


def test_a_written_quotation_mark_is_followed_to_the_next_token():
    # `"` was written with 0.5, `"un` would have been with 0.5: 0.5 · 0.8 for supported, 0.5 + 0.5 · 0.2 for the other.
    found = of('{"label":', ('"', {'"': 0.5, '"un': 0.5}), ("supported", {"supported": 0.8, "un": 0.2}), '"}')
    assert found == pytest.approx(dict(zip(LABELS, [0.4, 0, 0.6, 0], strict=True)))


def test_values_that_begin_alike_are_separated_where_they_differ():
    values = ("high", "highest", "low")
    found = of(
        '{"label":"',
        ("hi", {"hi": 0.8, "low": 0.2}),
        ("gh", {"gh": 1.0}),
        ("est", {"est": 0.75, '"': 0.25}),
        '"}',
        values=values,
    )
    assert found == pytest.approx({"high": 0.2, "highest": 0.6, "low": 0.2})


def test_a_drawn_token_that_is_not_listed_counts_as_what_the_list_leaves_over():
    found = of('{"label":"', ("contra", {"supported": 0.7, "un": 0.2}), 'dicted"}')
    assert found == pytest.approx(dict(zip(LABELS, [0.7, 0, 0.2, 0.1], strict=True)))


def test_an_explanation_that_quotes_a_label_is_not_the_label():
    prefix = r'{"explanation":"not \"label\":\"supported\", {\"label\": 1}","label":"'
    found = of(prefix, ("un", {"un": 0.9, "supported": 0.1}), 'supported","passages":[]}')
    assert found == pytest.approx(dict(zip(LABELS, [0.1, 0, 0.9, 0], strict=True)))


def test_a_nested_label_is_not_the_label():
    found = of('{"x":{"label":"supported"},"label":"', ("un", {"un": 0.9, "supported": 0.1}), 'supported"}')
    assert found["unsupported"] == pytest.approx(0.9)


def test_halves_of_a_character_before_the_label_do_no_harm():
    made = reply('{"explanation":"', "a", '","label":"', ("un", {"un": 0.9, "supported": 0.1}), 'supported"}')
    # A byte-level tokenizer cuts ü in two; each half reads as U+FFFD, and the two together are longer than the text.
    halves = (
        made.tokens[0],
        Token("\ufffd", (("\ufffd", 0.0),)),
        Token("\ufffd", (("\ufffd", 0.0),)),
        *made.tokens[2:],
    )
    found = distribution(Reply(made.text.replace('"a"', '"ü"'), "stop", halves), "label", LABELS)
    assert found["unsupported"] == pytest.approx(0.9)


def test_a_control_character_before_the_label_does_no_harm():
    # A grammar of a string of bounded length lets it stand as it is, which strict JSON does not.
    found = of('{"explanation":"\x01\n","label":"', ("un", {"un": 0.9, "supported": 0.1}), 'supported"}')
    assert found["unsupported"] == pytest.approx(0.9)


def test_spaces_of_free_json_are_read():
    found = of(
        '{\n  "label" :', (' "', {' "': 0.5, ' "un': 0.5}), ("supported", {"supported": 1.0}), '",\n "passages": [1]}\n'
    )
    assert found == pytest.approx(dict(zip(LABELS, [0.5, 0, 0.5, 0], strict=True)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "null",
        '{"label"',
        '{"label":',
        '{"passages":[1]}',
        '{"label":"yes"}',
        '{"label":3}',
        '["label"]',
        '{"label":"supp',
    ],
)
def test_without_a_label_there_are_none(text):
    assert distribution(reply(*text), "label", LABELS) is None


def test_without_log_probabilities_there_are_none():
    text = '{"label":"supported"}'
    assert distribution(Reply(text, "stop"), "label", LABELS) is None
    assert distribution(Reply(text, "stop", tuple(Token(c, ()) for c in text)), "label", LABELS) is None


def test_tokens_that_do_not_make_the_text_give_none():
    made = reply('{"label":"', "supported", '"}')
    assert distribution(Reply(made.text + " ", "stop", made.tokens), "label", LABELS) is None
    assert distribution(Reply(made.text, "stop", made.tokens[1:]), "label", LABELS) is None  # no quotation mark


@given(st.data())
def test_the_written_label_gets_the_probability_of_its_own_tokens(data):
    label = data.draw(st.sampled_from(LABELS))
    explanation = data.draw(st.text(max_size=30))
    reply = {"explanation": explanation, "label": label, "passages": data.draw(st.lists(st.integers(1, 9), max_size=3))}
    spaces = data.draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    text = json.dumps(reply, separators=spaces, ensure_ascii=data.draw(st.booleans()))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1))))
    at = text.rindex(f'"{label}"')  # where the value begins; its second character tells the four labels apart
    path, rest, tokens = 1.0, 0.0, []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        written = text[start:end]
        p = data.draw(st.floats(0.05, 0.9))
        top = {written: p}
        if start <= at + 1 and end > at:  # of the value, up to where it is decided
            head = text[start : max(start, at)]  # of this token before the value
            others = [o for o in LABELS if o != label]
            for other in data.draw(st.lists(st.sampled_from(others), unique=True)):
                tail = f'"{other}"'[max(0, start - at) :]
                size = data.draw(st.integers(2 if start <= at else 1, len(tail)))
                q = data.draw(st.floats(0.001, (1 - p) / 3))
                top[head + tail[:size]] = q
                rest += path * q
            path *= p
        for noise in data.draw(st.lists(st.sampled_from(["\n", "yes", "}", "ß"]), unique=True, max_size=2)):
            assume(not written.startswith(noise))
            top[noise] = 0.001
        tokens.append((written, top))
    found = of(*tokens)
    assert found[label] == pytest.approx(path / (path + rest))
    assert sum(found.values()) == pytest.approx(1)
    assert all(0 <= p <= 1 for p in found.values())
