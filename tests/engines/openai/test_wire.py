"""Requests and answers as bytes, without a server."""

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.engines.generator import TOP, GeneratorConfig, Prompt, Reply, Token
from tasks.engines.openai import _wire as wire

SCHEMA = {"type": "object", "properties": {"label": {"enum": ["yes", "no"]}}, "required": ["label"]}
PROMPT = Prompt("Be short.", "Evidence. Claim ü?", SCHEMA, 64)
TEXT = '{"label":"yes"}'


def config(**options):
    server = {"urls": ["http://127.0.0.1:9/v1"]}
    return GeneratorConfig(model="/models/x", engine="openai_server", server=server, **options)


def form(samples=1, **options):
    return wire.Wire(config(**options), "x", samples)


def choice(text=TEXT, finish="stop", tokens=None, **message):
    made = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    return made if tokens is None else {**made, "logprobs": {"content": [token(t) for t in tokens]}}


def token(text, alternatives=(("yes", -0.1), ("no", -2.5))):
    top = [{"token": t, "logprob": p, "bytes": [1, 2]} for t, p in alternatives]
    return {"token": text, "logprob": -0.1, "bytes": None, "top_logprobs": top}


def answer(*choices, usage=None):
    return json.dumps({"id": "1", "object": "chat.completion", "choices": choices, "usage": usage}).encode()


def texts(reply):
    return [t.text for t in reply.tokens]


def test_a_request_says_what_the_api_asks_for():
    # The names are those of OpenAI's reference of chat completions.
    asked = {
        "model": "x",
        "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Evidence. Claim ü?"}],
        "max_tokens": 64,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
        },
        "temperature": 0,
    }
    assert json.loads(form().encode(PROMPT)) == asked
    # Nine tenths of an answer are alternatives: where nobody looks at them, they are not asked for.
    alternatives = {"logprobs": True, "top_logprobs": TOP}
    assert json.loads(form().encode(replace(PROMPT, alternatives=True))) == asked | alternatives


def test_drawing_is_described_only_where_there_is_one():
    drawn = json.loads(form(3, temperature=0.7, top_p=0.9, seed=5).encode(PROMPT))
    assert {k: drawn[k] for k in ("temperature", "top_p", "seed", "n")} == {
        "temperature": 0.7, "top_p": 0.9, "seed": 5, "n": 3,
    }  # fmt: skip
    assert not {"n", "seed", "top_p"} & set(json.loads(form(3).encode(PROMPT)))


def test_a_model_that_can_think_gets_the_setting_and_room():
    assert "chat_template_kwargs" not in json.loads(form().encode(PROMPT))
    off = json.loads(form(thinking=False).encode(PROMPT))
    assert (off["chat_template_kwargs"], off["max_tokens"]) == ({"enable_thinking": False}, 64)
    on = json.loads(form(thinking=True, thinking_tokens=700).encode(PROMPT))
    assert (on["chat_template_kwargs"], on["max_tokens"]) == ({"enable_thinking": True}, 700)


def test_every_prompt_keeps_its_own_schema():
    asked = form()
    for title in ("a", "b", "a"):
        body = json.loads(asked.encode(Prompt("", "", {**SCHEMA, "title": title}, 64)))
        assert body["response_format"]["json_schema"]["schema"]["title"] == title


def test_an_answer_is_read():
    details = {"cached_tokens": 32}
    usage = {"prompt_tokens": 40, "completion_tokens": 4, "total_tokens": 44, "prompt_tokens_details": details}
    found = form().decode(PROMPT, answer(choice(tokens=['{"', "label", '":"', "yes", '"}']), usage=usage))
    assert (found.tokens_in, found.tokens_cached, found.tokens_out, found.failure) == (40, 32, 4, None)
    (reply,) = found.replies
    assert (reply.text, reply.finish) == (TEXT, "stop")
    assert reply.tokens[3] == Token("yes", (("yes", -0.1), ("no", -2.5)))


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 7, "prompt_tokens_details": None}])
def test_what_a_server_does_not_count_is_zero(usage):
    found = form().decode(PROMPT, answer(choice(), usage=usage))
    assert (found.tokens_cached, found.tokens_out) == (0, 0)
    assert found.replies == (Reply(TEXT, "stop"),)


@pytest.mark.parametrize("content", [None, ""])
def test_an_empty_reply_is_one(content):
    assert form().decode(PROMPT, answer(choice(content, "length"))).replies == (Reply("", "length"),)


def test_only_an_end_of_its_own_is_a_stop():
    for reason in ("length", "content_filter", "abort", None):
        assert form().decode(PROMPT, answer(choice(finish=reason))).replies[0].finish == "length"


def test_an_impossible_token_is_no_alternative():
    # JSON has no -inf; vLLM writes -9999.
    given_ = {"message": {"content": "a"}, "logprobs": {"content": [token("a", (("a", -0.5), ("b", -9999.0)))]}}
    assert form().decode(PROMPT, answer(given_)).replies[0].tokens == (Token("a", (("a", -0.5),)),)


def test_at_temperature_0_one_reply_stands_for_all_samples():
    assert len(form(3).decode(PROMPT, answer(choice())).replies) == 3


def test_samples_that_a_server_leaves_out_are_empty():
    found = form(3, temperature=1).decode(PROMPT, answer(choice("a"), choice("b")))
    assert [reply.text for reply in found.replies] == ["a", "b", ""]
    found = form(2, temperature=1).decode(PROMPT, answer(choice("a"), choice("b"), choice("c")))
    assert [reply.text for reply in found.replies] == ["a", "b"]


def test_a_prompt_that_leaves_no_room_by_the_config_is_too_long_wherever_it_is_asked():
    # 300 tokens for prompt and reply, 64 for the reply: 236 fit, 237 do not.
    short = form(max_tokens=300).decode(PROMPT, answer(choice(), usage={"prompt_tokens": 236}))
    long = form(max_tokens=300).decode(PROMPT, answer(choice(), usage={"prompt_tokens": 237, "completion_tokens": 9}))
    assert (short.failure, len(short.replies)) == (None, 1)
    assert (long.failure, long.replies, long.tokens_in, long.tokens_out) == ("too_long", (), 237, 9)


@pytest.mark.parametrize(
    "raw",
    [b"", b"<html>", b"[]", b"{}", b'{"choices":[]}', b'{"choices":[{}]}', b'{"choices":"x"}', b'{"choices":[{"mess',
     b'{"choices":[{"message":{"content":"\xff"}}]}'],
)  # fmt: skip
def test_what_is_no_answer_is_malformed(raw):
    with pytest.raises(wire.MALFORMED):
        form().decode(PROMPT, raw)


def test_a_thought_in_a_field_of_its_own_is_not_read():
    thought = {"reasoning": "hm", "reasoning_content": "hm"}
    assert form().decode(PROMPT, answer(choice(None, "length", **thought))).replies == (Reply("", "length"),)
    # vLLM's log-probabilities are those of the thought's tokens too.
    tokens = ["<think>", "hm", "</think>", "\n\n", '{"label', '":"', "yes", '"}', "<|im_end|>"]
    (reply,) = form().decode(PROMPT, answer(choice(TEXT, tokens=tokens, **thought))).replies
    assert texts(reply) == ['{"label', '":"', "yes", '"}']


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>hm</think>\n\n" + TEXT, TEXT),
        ("\n<think>\n</think>" + TEXT, TEXT),
        ("hm, begun by the template</think>" + TEXT, TEXT),
        ("<think>hm, never ended", ""),
        ('{"explanation":"It says </think> and <think>."}', '{"explanation":"It says </think> and <think>."}'),
        ("no thought, no object", "no thought, no object"),
    ],
)
def test_a_thought_that_a_reply_begins_with_is_cut_off(text, rest):
    assert wire.without_thought(text) == rest


def test_the_tokens_of_a_thought_are_cut_off_with_it():
    tokens = ["<think>", 'Is it {"label":"no"}', "?", "</think>\n\n{", '"label', '":"', "yes", '"}']
    (reply,) = form().decode(PROMPT, answer(choice("".join(tokens), tokens=tokens))).replies
    assert reply.text == TEXT
    assert texts(reply) == ["{", '"label', '":"', "yes", '"}']


@given(
    st.lists(st.text(min_size=1, max_size=5), max_size=8), st.lists(st.text(min_size=1, max_size=5), max_size=4),
    st.sampled_from([[], ["<|im_end|>"], ["</s>"]]),
)  # fmt: skip
def test_tokens_make_the_reply(kept, thought, end):
    text = "".join(kept)
    tokens = wire.tokens_of(text, [(t, ((t, -1.0),)) for t in (*thought, *kept, *end)])
    if kept and (not end or not text.endswith(end[0])):
        assert [(t.text, t.top) for t in tokens] == [(t, ((t, -1.0),)) for t in kept]


@given(st.text(max_size=30), st.lists(st.text(max_size=5), max_size=12))
def test_tokens_make_the_reply_whatever_a_server_gives(text, given_):
    tokens = wire.tokens_of(text, [(t, ()) for t in given_])
    assert not tokens or "".join(t.text for t in tokens) == text


def test_white_space_that_a_server_strips_is_put_back():
    # Servers that name single tokens by decoding them alone lose the space that begins a word.
    named = ["{", '"label', '":', '"yes', "it", "is", '"}']
    tokens = wire.tokens_of('{"label": "yes it is"}', [(t, ()) for t in named])
    assert [t.text for t in tokens] == ["{", '"label', '":', ' "yes', " it", " is", '"}']


def test_a_character_that_no_token_holds_costs_only_what_comes_before_it():
    named = ['{"why":"', "\\xe2\\x82", "\\xac", '","label":"', "yes", '"}']
    tokens = wire.tokens_of('{"why":"€","label":"yes"}', [(t, ((t, -1.0),)) for t in named])
    assert [t.text for t in tokens] == ['{"why":"€', '","label":"', "yes", '"}']
    assert tokens[0].top == ()
    assert tokens[2].top == (("yes", -1.0),)


# As the servers word it: vLLM, OpenAI, llama.cpp, text-generation-inference, SGLang.
TOO_LONG = [
    {"error": {"message": "This model's maximum context length is 100 tokens. However, your prompt contains 101 input "
               "tokens", "type": "BadRequestError", "param": "input_tokens", "code": 400}},
    {"object": "error", "message": "The decoder prompt (length 9) is longer than the maximum model length of 8."},
    {"error": {"message": "Reduce it.", "type": "invalid_request_error", "code": "context_length_exceeded"}},
    {"error": {"code": 400, "message": "the request exceeds the available context size", "type": "x"}},
    {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096", "error_type": "validation"},
    {"error": {"message": "The input (9 tokens) is longer than the model's context length (8 tokens)."}},
]  # fmt: skip
OTHER = [{"error": {"message": "Unknown parameter", "param": "top_logprobs"}}, {"detail": []}, [], {"error": None}, 1]


def test_prompts_that_are_too_long_are_known_by_what_servers_say():
    assert [wire.is_too_long(json.dumps(body).encode()) for body in TOO_LONG] == [True] * len(TOO_LONG)
    assert not any(wire.is_too_long(json.dumps(body).encode()) for body in OTHER)
    assert not wire.is_too_long(b"<html>")


def test_a_refusal_is_quoted_only_by_a_field_of_ours():
    assert wire.refused_field(json.dumps(OTHER[0]).encode()) == "top_logprobs"
    assert wire.refused_field(b'{"error":{"message":"x","param":"the patient said"}}') is None
    assert wire.refused_field(b"oops") is None


def test_models_are_listed_where_a_server_lists_them():
    assert wire.model_names(b'{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}') == ["a", "b"]
    assert wire.model_names(b"not found") is None


def test_what_is_decoded_of_an_answer_is_typed():
    with pytest.raises(msgspec.ValidationError):
        form().decode(PROMPT, b'{"choices":[{"message":{"content":3}}]}')
