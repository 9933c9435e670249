"""Replies by real vLLM on the CPU: what is asked of it, what it may write, and what is left behind.

A load takes some 20 seconds, so there is one as in a night, and one in this process. Tests run in any order, beside
those of other files. Replies are those of a small real model; made-up ones think, which no small real one does, and
stand for any model in what fails before a reply.
"""

import importlib.util
import json
import math
import sys

import jsonschema
import psutil
import pytest
import torch
import transformers
from conftest import in_process
from hypothesis import given
from hypothesis import strategies as st
from kit.models.llms import END, POSITIONS, START, STOP, THINK, THOUGHT, build

from tasks.core.errors import EngineError
from tasks.engines._chat import SAME_DAY, Chat
from tasks.engines.generator import TOP, Generated, GeneratorConfig, Prompt, open_generator
from tasks.engines.vllm import _host
from tasks.engines.vllm.generator import VllmGenerator, thought

VLLM = importlib.util.find_spec("vllm") is not None
real = pytest.mark.skipif(not VLLM, reason="vLLM is not installed: make .venv/vllm")
LABELS = ["supported", "partially_supported", "unsupported", "contradicted"]
VERDICT = {
    "type": "object",
    "properties": {
        "label": {"enum": LABELS},
        "passages": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 4}, "maxItems": 3},
    },
    "required": ["label", "passages"],
    "additionalProperties": False,
}
EXPLAINED = {
    "type": "object",
    "properties": {"explanation": {"type": "string", "maxLength": 30}, **VERDICT["properties"]},
    "required": ["explanation", "label", "passages"],
    "additionalProperties": False,
}
ENDLESS = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 400}},
    "required": ["text"],
    "additionalProperties": False,
}
SYSTEM = "Is the claim supported by the passages? Answer with a JSON object."
EVIDENCE = "[1] The customer canceled the order on March 14, 2024.\n[2] Apples lower cholesterol.\n" * 2
MARKERS = [END, START, STOP, THINK, THOUGHT]


def prompt(claim, schema=VERDICT, evidence=EVIDENCE, max_tokens=120):
    return Prompt(SYSTEM, f"{evidence}\nClaim: {claim}", schema, max_tokens, alternatives=True)


def config(folder, **options):
    return GeneratorConfig(model=str(folder), **{"max_tokens": 1024, "dtype": "float32", **options})


def engines():
    """vLLM's processes that descend from this one."""
    return [p for p in psutil.Process().children(recursive=True) if "resource_tracker" not in " ".join(p.cmdline())]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def thinker(tmp_path_factory):
    return build(tmp_path_factory.mktemp("thinker"), thinking=True)


@pytest.fixture(scope="module")
def plain(smollm2):
    made = open_generator(config(smollm2, offline={"batch_tokens": 256}))  # it tries a full batch out when it loads
    assert isinstance(made, VllmGenerator)
    with in_process():
        made.generate([prompt("Load.", evidence="", max_tokens=8)])
    yield made
    made.close()


def tokenizer(folder):
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module", params=["smollm2", "thinker"])
def own(request):
    return tokenizer(request.getfixturevalue(request.param))


@pytest.fixture(scope="module")
def chat(own):
    return Chat(own, "model", None)


def test_the_prompt_is_what_the_template_makes_of_it(own, chat):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "The apples."}]
    (ids,) = chat.encode([(SYSTEM, "The apples.")])
    assert own.decode(ids) == own.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def test_the_template_gets_the_setting_of_thinking(thinker):
    own = tokenizer(thinker)
    ends = {t: own.decode(next(Chat(own, "model", t).encode([("s", "u")]))) for t in (None, True, False)}
    assert ends[None] == ends[True] == ends[False].removesuffix("<think>\n\n</think>\n\n")
    assert ends[False] != ends[True]


@given(st.lists(st.one_of(st.sampled_from([*MARKERS, "<|im_", "end|>", "<th", "ink>", "\n"]), st.text(max_size=5))))
def test_the_prompt_holds_no_marker_that_a_text_asked_for(own, chat, parts):
    text = "".join(parts)
    (empty,), (ids,) = chat.encode([("", "")]), chat.encode([(text, text)])
    markers = set(own.added_tokens_decoder)
    assert [i for i in ids if i in markers] == [i for i in empty if i in markers]
    known = own.decode(own.encode(text, add_special_tokens=False))  # SmolLM2 has no tokens for what nobody writes
    assert own.decode(ids).count(known) >= (2 if known else 0)  # and yet it is all there


def test_the_prompt_shares_ids_up_to_the_claim(own, chat):
    one, two = chat.encode([(SYSTEM, prompt(claim).user) for claim in ("apples lower it", "Cancellations spiked")])
    same = next(n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    assert own.decode(one[:same]).endswith(f"{EVIDENCE}\nClaim:")


def test_the_prompt_folds_the_system_where_the_template_knows_none(own, monkeypatch):
    template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "<|im_start|>{{ messages[0].content | trim }}<|im_end|>"
    )
    monkeypatch.setattr(own, "chat_template", template)
    (ids,) = Chat(own, "model", None).encode([("Judge.", "The claim.")])
    assert own.decode(ids) == "<|im_start|>Judge.\n\nThe claim.<|im_end|>"


def test_the_prompt_is_the_same_each_day(own, monkeypatch):
    template = (
        "{% macro today() %}{{ strftime_now('%d %b %Y') if strftime_now is defined }}{% endmacro %}"
        "{{ today() }}{% for m in messages %}{{ m.content }}{% endfor %}"
    )
    monkeypatch.setattr(own, "chat_template", template)
    (ids,) = Chat(own, "model", None).encode([("a", "b")])
    assert own.decode(ids) == "01 Jan 2025ab"
    assert "01 Jan 2025" in SAME_DAY


@pytest.mark.parametrize("template", ["{{ messages[0].content | upper }}", "{{ nonsense(", None])
def test_the_prompt_needs_a_template_that_repeats_messages(own, template, monkeypatch):
    monkeypatch.setattr(own, "chat_template", template)
    with pytest.raises(EngineError, match=r"chat template of the model can't be used \(.+\)\. Use a model made for"):
        Chat(own, "the model", None)


@pytest.mark.slow
@real
def test_a_reply_is_valid_under_its_schema(plain):
    asked = [prompt(f"claim {n}", schema) for schema in (VERDICT, EXPLAINED) for n in range(2)]
    made = plain.generate(asked)
    assert [m.failure for m in made] == [None] * 4
    for p, m in zip(asked, made, strict=True):
        assert m.replies[0].finish == "stop"
        # The grammar of a string of bounded length lets control characters in, which strict JSON does not.
        found = json.loads(m.replies[0].text, strict=False)
        jsonschema.validate(found, p.schema)
        assert list(found) == list(p.schema["properties"])  # in the schema's order
    assert len({m.replies[0].text for m in made}) > 2  # it is the model that answers


@pytest.mark.slow
@real
def test_a_reply_that_needs_more_tokens_is_cut_off(plain):
    (made,) = plain.generate([prompt("x", ENDLESS, max_tokens=20)])
    assert made.replies[0].finish == "length"
    assert made.tokens_out == len(made.replies[0].tokens) == 20


@pytest.mark.slow
@real
def test_a_reply_is_what_its_tokens_make(plain):
    for made in plain.generate([prompt("x"), prompt("y", ENDLESS, max_tokens=20)]):
        (reply,) = made.replies
        assert reply.text == "".join(token.text for token in reply.tokens)
        assert STOP not in reply.text
    assert made.tokens_in > 0


@pytest.mark.slow
@real
def test_a_reply_has_the_models_own_log_probabilities(plain, smollm2):
    asked = prompt("the customer canceled")
    (made,) = plain.generate([asked])
    own = tokenizer(smollm2)
    model = transformers.AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32)
    (ids,) = Chat(own, "model", None).encode([(asked.system, asked.user)])
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, -1].tolist()
    top = made.replies[0].tokens[0].top
    # A reply begins with a brace, after which a quotation mark may follow: the grammar leaves these alone.
    assert {text for text, _ in top} == {"{", '{"'}
    (a, p), (b, q) = top
    assert p - q == pytest.approx(logits[own.vocab[a]] - logits[own.vocab[b]], abs=1e-3)
    assert p == pytest.approx(max(p, q))
    for token in made.replies[0].tokens:
        assert 1 <= len(token.top) <= TOP
        assert token.top[0][0] == token.text  # temperature 0 takes the likeliest
        total = sum(math.exp(p) for _, p in token.top)
        assert total <= 1 + 1e-3
        if len(token.top) < TOP:  # all that is possible there
            assert total == pytest.approx(1, abs=1e-3)


@pytest.mark.slow
@real
def test_a_reply_to_an_equal_prompt_is_equal(plain):
    asked = prompt("x", max_tokens=8)  # past the label
    one, _, two = plain.generate([asked, prompt("other"), asked])
    assert one.replies[0].text == two.replies[0].text
    (again,) = plain.generate([asked])
    assert again.replies[0].text == one.replies[0].text


@pytest.mark.slow
@real
def test_a_reply_is_written_once_for_all_samples_at_temperature_0(plain):
    asked = [prompt("x", max_tokens=8)]
    (one,), (made,) = plain.generate(asked), plain.generate(asked, samples=3)
    assert [reply.text for reply in made.replies] == [one.replies[0].text] * 3
    assert made.tokens_out == one.tokens_out


@pytest.mark.slow
@real
def test_a_reply_reads_shared_evidence_once(plain):
    evidence = "The order of March 14 is on its way. " * 14  # more than one block of the cache, 128 tokens here
    plain.generate([prompt("one", evidence=evidence, max_tokens=1)])
    (made,) = plain.generate([prompt("another", evidence=evidence, max_tokens=1)])
    assert 128 <= made.tokens_cached < made.tokens_in


@pytest.mark.slow
@real
def test_a_reply_that_has_no_room_is_a_failure_of_its_prompt_alone(plain, smollm2):
    chat = Chat(tokenizer(smollm2), "model", None)
    length = len(next(chat.encode([(SYSTEM, prompt("x").user)])))
    fits = prompt("x", max_tokens=1024 - length)
    made = plain.generate([prompt("x y " * 1500), fits, prompt("x", max_tokens=1025 - length)])
    assert [m.failure for m in made] == ["too_long", None, "too_long"]
    assert made[0] == Generated(failure="too_long")
    assert made[1].tokens_in == length


@pytest.mark.slow
@real
def test_a_reply_to_nothing_is_nothing(plain):
    assert plain.generate([]) == []


@pytest.mark.slow
@real
def test_thinking_is_no_part_of_the_reply_and_close_ends_every_process(thinker):
    before = engines()
    own = VllmGenerator(
        config(
            thinker,
            thinking=True,
            thinking_tokens=160,
            temperature=1,
            seed=7,
            offline={
                "reasoning_parser": "deepseek_r1",
                "prefix_caching": False,
                "max_sequences": 8,
                "batch_tokens": 512,
            },
        )
    )
    try:
        made = own.generate([prompt("x", max_tokens=8), prompt(f"{THOUGHT}{STOP}")], samples=6)
        again = own.generate([prompt("x", max_tokens=8)], samples=6)
        assert len(engines()) > len(before)
    finally:
        own.close()
    assert engines() == before
    replies = [reply for m in made for reply in m.replies]
    assert [len(m.replies) for m in made] == [6, 6]
    ended = [reply for reply in replies if reply.finish == "stop" and reply.text]
    assert ended  # a thought ends with one token in twenty or so, and there is room for 160
    for reply in ended:
        jsonschema.validate(json.loads(reply.text), VERDICT)
    for reply in replies:
        assert reply.text == "".join(token.text for token in reply.tokens)
        assert not reply.text or reply.text.startswith("{")
    # The thoughts are counted, though not kept: each has a token that ends it at least.
    assert all(m.tokens_out >= sum(len(r.tokens) for r in m.replies) + 6 for m in made)
    assert len({reply.text for reply in replies}) > 1  # drawn anew each time
    assert [r.text for r in again[0].replies] == [r.text for r in made[0].replies]  # and by seed
    assert [m.tokens_cached for m in (*made, *again)] == [0, 0, 0]


@real
@pytest.mark.parametrize("name", ["qwen3", "deepseek_r1"])
def test_thinking_ends_at_the_first_marker(thinker, name):
    from vllm.reasoning import ReasoningParserManager  # noqa: PLC0415 - ten seconds

    if name == "qwen3":
        pytest.importorskip(
            "vllm.parser.engine.registered_adapters",
            reason="packages that vLLM needs for its newer parsers are not installed",
            exc_type=ImportError,
        )
    own = tokenizer(thinker)
    parser = ReasoningParserManager.get_reasoning_parser(name)

    def reply(begun, written):
        ids = own.encode(written, add_special_tokens=False)
        return own.decode(ids[thought(parser(own), own.encode(begun, add_special_tokens=False), ids) :])

    assert reply("assistant\n", 'Why? {"a":1}</think>{"a":2}') == '{"a":2}'
    assert reply("assistant\n<think>", 'Why?</think>{"a":"</think>"}') == '{"a":"</think>"}'
    assert reply("assistant\n", 'It never ends. {"a":1}') == ""
    assert reply("assistant\n<think>\n\n</think>\n\n", '{"a":1}') == '{"a":1}'
    assert reply("assistant\n", "Ends.</think>") == ""


def test_thinking_needs_a_name_for_how_it_ends(folder):
    with pytest.raises(ValueError, match=r"add offline\.reasoning_parser"):
        config(folder, thinking=True)


@real
@pytest.mark.parametrize("name", ["nonsense", "deepseek_r1"])
def test_thinking_needs_a_model_that_has_the_markers(folder, name):
    own = VllmGenerator(config(folder, thinking=True, thinking_tokens=64, offline={"reasoning_parser": name}))
    with pytest.raises(
        EngineError, match=rf"reasoning parser '{name}' can't read language model .+ Check offline\.reasoning_parser"
    ):
        own.generate([prompt("x")])


def test_an_error_says_what_to_do_where_there_is_no_folder(tmp_path):
    with pytest.raises(EngineError, match=r"language model '.*gone' is not a folder\. Check the path"):
        VllmGenerator(config(tmp_path / "gone")).generate([prompt("x")])


def test_an_error_says_what_to_do_where_it_holds_no_model(tmp_path):
    with pytest.raises(EngineError, match=r"language model .* can't be loaded .*Give a folder with config\.json"):
        VllmGenerator(config(tmp_path)).generate([prompt("x")])


def test_an_error_says_what_to_do_where_the_hub_does_not_answer(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    own = VllmGenerator(config("acme/judge-7b", revision="0" * 40))
    with pytest.raises(EngineError, match=r"'acme/judge-7b' can't be loaded .*Check the name and the revision and"):
        own.generate([prompt("x")])


def test_an_error_says_what_to_do_without_vllm(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)  # as if it were not there
    with pytest.raises(EngineError, match=r"needs the package 'vllm'\. Run: pip install -r requirements-gpu\.lock"):
        VllmGenerator(config(folder)).generate([prompt("x")])


@pytest.mark.slow
@real
def test_an_error_says_what_to_do_where_the_model_reads_less(folder):
    own = VllmGenerator(config(folder, max_tokens=POSITIONS + 1))
    with pytest.raises(EngineError, match=r"reads fewer tokens than max_tokens, 2049\. Lower it"):
        own.generate([prompt("x")])


@real
def test_an_error_says_what_to_do_where_batches_can_not_be_invariant(folder):
    if not _host.on_cpu():
        pytest.skip("a GPU can have invariant batches")
    own = VllmGenerator(config(folder, offline={"batch_invariant": True}))
    with pytest.raises(
        EngineError, match=r"offline\.batch_invariant is set, which vLLM supports only on GPUs\. Remove it"
    ):
        own.generate([prompt("x")])


def test_the_description_follows_the_weights_and_not_how_they_are_run(folder, thinker):
    described = VllmGenerator(config(folder)).describe()
    assert described == VllmGenerator(config(folder, offline={"max_sequences": 3, "prefix_caching": False})).describe()
    assert described != VllmGenerator(config(thinker)).describe()
    assert described["thinking_tokens"] is None
