"""Replies that name their request: what is sent, what is taken off, and what a proxy that mixes replies up comes to."""

import asyncio
import json
from itertools import pairwise

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from kit.chat_server import serve
from kit.root import ROOT

from tasks.core import keys
from tasks.core.config import validate
from tasks.core.types import OUTAGE, Request
from tasks.engines.generator import NONCE_TOKENS, GeneratorConfig, Prompt, Reply, Token
from tasks.engines.openai import _nonce
from tasks.engines.openai import _wire as wire
from tasks.engines.openai.server import Pauses, ServerGenerator
from tasks.judges.llm import Config, Llm

SCHEMA = {"type": "object", "properties": {"label": {"enum": ["yes", "no"]}}, "required": ["label"]}
PROMPT = Prompt("Be short.", "Evidence. Claim?", SCHEMA, 64)
OTHER = Prompt("Be short.", "Evidence. Another claim?", SCHEMA, 64)


def settings(url="http://127.0.0.1:9/v1", nonce=True, **server):
    return GeneratorConfig(
        model="org/x",
        revision="0" * 40,
        engine="openai_server",
        server={"urls": [url], "served_name": "x", "nonce": nonce, **server},
    )


def test_a_request_asks_for_its_nonce_in_the_schema_and_nowhere_else():
    tied, plain = (json.loads(wire.Wire(settings(nonce=on), "x", 1).encode(PROMPT)) for on in (True, False))
    schema = tied.pop("response_format")["json_schema"]["schema"]
    assert list(schema["properties"]) == ["label", "nonce"]  # the last: what is written before it does not change
    assert schema["required"] == ["label", "nonce"]
    assert schema["properties"]["nonce"] == {"type": "string", "enum": [_nonce.nonce(PROMPT)]}
    del plain["response_format"]
    assert tied == {**plain, "max_tokens": 64 + NONCE_TOKENS}  # the prompt is the same: so is what a cache has of it


def test_a_nonce_follows_from_the_texts_alone():
    again = Prompt("Be short.", "Evidence. Claim?", {"type": "object"}, 9)
    assert _nonce.nonce(again) == _nonce.nonce(PROMPT) != _nonce.nonce(OTHER)
    assert _nonce.nonce(Prompt("Be short.Evidence.", " Claim?", SCHEMA, 64)) != _nonce.nonce(PROMPT)
    drawn = [_nonce.nonce(Prompt("", str(n), SCHEMA, 64)) for n in range(300)]
    assert len(set(drawn)) > 295  # 300 of 456,976: 0.1 pairs are equal on average
    assert all(len(text) == 4 and text.isascii() and text.islower() for text in drawn)


@given(st.lists(st.integers(1, 60), max_size=12), st.sampled_from(["", " ", "\n "]))
def test_without_its_nonce_a_reply_is_what_it_would_have_been(cuts, space):
    """However the text falls into tokens, and with any white space that JSON allows."""
    text = f'{{"label":"yes"{space},{space}"nonce"{space}:{space}"{_nonce.nonce(PROMPT)}"{space}}}{space}'
    ends = sorted({c for c in cuts if c < len(text)} | {0, len(text)})
    tokens = tuple(Token(text[a:b], (("x", -0.5),)) for a, b in pairwise(ends))
    made = _nonce.without_nonce(PROMPT, Reply(text, "stop", tokens))
    assert json.loads(made.text) == {"label": "yes"}
    assert "".join(token.text for token in made.tokens) == made.text
    assert made.tokens[:-1] == tokens[: len(made.tokens) - 1]
    assert _nonce.without_nonce(PROMPT, Reply(text, "stop")).tokens == ()


@pytest.mark.parametrize(
    "text",
    [
        '{"label":"yes"}',  # the server ignores the schema
        '{"label":"yes","nonce":"OTHER"}',
        '{"nonce":"OWN","label":"yes"}',
        '{"label":"yes","nonce":"OWN"} and more',
        "yes",
    ],
)
def test_another_nonce_or_none_is_refused(text):
    shown = text.replace("OTHER", _nonce.nonce(OTHER)).replace("OWN", _nonce.nonce(PROMPT))
    with pytest.raises(_nonce.MixedUpError):
        _nonce.without_nonce(PROMPT, Reply(shown, "stop"))


@pytest.mark.parametrize("reply", [Reply('{"label":"y', "length"), Reply("", "stop"), Reply(" ", "stop")])
def test_a_reply_that_was_cut_off_or_is_empty_fails_as_such(reply):
    assert _nonce.without_nonce(PROMPT, reply) == reply


# A proxy between Leadline and a model


LABELS = {"The tea is hot.": "supported", "The tea is cold.": "contradicted", "It is green.": "unsupported"}
NEVER_SWAPPED = "It is green."


class Proxy:
    """Passes replies of a model on; the first `swapped` pairs of them each to the other's request."""

    def __init__(self, swapped):
        self.left, self.waiting = swapped, []

    async def __call__(self, server, body):
        own = asyncio.get_running_loop().create_future()
        if self.left == 0 or self.claim(body) == NEVER_SWAPPED:
            own.set_result(self.reply(body))
        elif not self.waiting:
            self.waiting.append((body, own))
        else:
            (first, theirs), self.left = self.waiting.pop(), self.left - 1
            theirs.set_result(self.reply(body))
            own.set_result(self.reply(first))
        return web.json_response(await own)

    def claim(self, body):
        return body["messages"][1]["content"].split("<claim>\n")[1].split("\n</claim>")[0]

    def reply(self, body):
        """What the model answers: the claim's label, and whatever the schema asks for at the end."""
        schema = body["response_format"]["json_schema"]["schema"]
        made = {"label": LABELS[self.claim(body)], "passages": [1]}
        made |= {name: schema["properties"][name]["enum"][0] for name in schema["properties"] if name not in made}
        message = {"message": {"content": json.dumps(made)}, "finish_reason": "stop"}
        return {"choices": [message], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}


def verdicts(proxy, nonce=True, retries=3):
    """Label and failure of each claim, and how many requests that took."""
    passage = "The tea is hot."
    requests = [Request(key, passage, c) for key, c in zip(keys.request_keys([passage], LABELS), LABELS, strict=True)]
    with serve(proxy) as server:
        model = settings(server.url, nonce=nonce, retries=retries)
        prompt = str(ROOT / "configs/prompts/entailment/v1.md")
        config = validate(Config, {"kind": "llm", "model": model.model_dump(), "prompt": prompt}, "judge.yaml")
        judge = Llm(config, ServerGenerator(config.model, Pauses(first_s=0.002)))
        try:
            return [(v.label, v.failure) for v in judge.judge(requests)], len(server.asked)
        finally:
            judge.close()


RIGHT = [("supported", None), ("contradicted", None), ("unsupported", None)]


def test_swapped_replies_are_believed_without_a_nonce():
    """Why there is one."""
    assert verdicts(Proxy(swapped=1), nonce=False) == ([RIGHT[1], RIGHT[0], RIGHT[2]], 3)


def test_swapped_replies_are_noticed_and_asked_for_again():
    assert verdicts(Proxy(swapped=1)) == (RIGHT, 5)


def test_what_stays_swapped_is_an_outage_which_the_next_run_makes_good():
    """Outages are not stored as verdicts: the next run asks for them again (tests/judging/test_verdicts.py)."""
    lost = [(None, OUTAGE), (None, OUTAGE), RIGHT[2]]
    assert verdicts(Proxy(swapped=3), retries=2) == (lost, 2 * 3 + 1)
    assert verdicts(Proxy(swapped=0), retries=2) == (RIGHT, 3)
