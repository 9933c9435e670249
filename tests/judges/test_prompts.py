"""Prompt files: what is checked when they are read, how they are filled in, and that released ones never change."""

import hashlib

import pytest
from jsonschema import Draft202012Validator
from kit.root import ROOT

from tasks.core.errors import ConfigError
from tasks.judges import _fence, _prompts

RELEASED = ROOT / "configs" / "prompts"
GOOD = """---
inputs: [passages, claim]
output:
  type: object
  properties:
    label: {type: string, enum: [good, bad]}
    passages: {type: array, items: {type: integer, minimum: 1, maximum: $passages}, maxItems: $passages}
  required: [label, passages]
  additionalProperties: false
---
# System

Judge  it.

# User

{{ passages }}
---
# Not a part

{{ claim }}
"""
ENTAILMENT = {"entailment": ("label", "passages"), "entailment_explained": ("explanation", "label", "passages")}


def load(tmp_path, text=GOOD, inputs=("passages", "claim"), fields=("label", "passages"), counts=("passages",)):
    file = tmp_path / "v1.md"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return _prompts.load(file, inputs, fields, counts, where="judge.yaml", key="prompt")


def entailment(name):
    file = RELEASED / name / "v1.md"
    return _prompts.load(file, ("passages", "claim"), ENTAILMENT[name], ("passages",), where="", key="")


def test_text_is_kept_to_the_character(tmp_path):
    prompts = load(tmp_path).fill(50, {"passages": 2}, passages="  <b>\n{{ x }} &amp;", claim="c\n")
    assert prompts.system == "Judge  it."
    assert prompts.user == "  <b>\n{{ x }} &amp;\n---\n# Not a part\n\nc\n"
    assert prompts.max_tokens == 50


def test_numbers_are_filled_in_and_equal_ones_share_a_schema(tmp_path):
    prompt = load(tmp_path)
    three, again, four = (prompt.fill(9, {"passages": n}, passages="", claim="").schema for n in (3, 3, 4))
    assert three is again
    assert three["properties"]["passages"] == {
        "type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 3}, "maxItems": 3,
    }  # fmt: skip
    assert four["properties"]["passages"]["maxItems"] == 4
    assert list(three["properties"]) == ["label", "passages"]  # the order that the model is held to


def test_the_hash_is_of_every_byte(tmp_path):
    assert load(tmp_path).hash == load(tmp_path).hash
    assert load(tmp_path).hash != load(tmp_path, GOOD.replace("Judge  it", "Judge it")).hash
    assert load(tmp_path).hash != load(tmp_path, GOOD + "\n").hash  # though the text prompts is the same


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---\n", "", r"v1\.md is not a prompt\. Write front matter"),
        ("# User\n", "## User\n", r"v1\.md is not a prompt"),
        ("inputs: [", "inputs: [[", r"v1\.md has front matter that is not valid YAML"),
        ("inputs:", "input:", r"v1\.md has front matter with input, output\. Its keys are exactly inputs and output"),
        ("[passages, claim]", "[passages]", r"inputs is \['passages'\], but the text uses \['claim', 'passages'\]"),
        ("[passages, claim]", "[passages, claim, it]", r"inputs is .*Make the two agree"),
        ("[passages, claim]", "3", r"inputs is int"),
        ("{{ claim }}", "{{ claim", r"# User is no Jinja template"),
        ("Judge", "{% if %}", r"# System is no Jinja template"),
        ("type: object", "type: objekt", r"output is no JSON schema at \$\.type"),
        ("maxItems: $passages", "maxItems: many", r"output is no JSON schema at \$\.properties\.passages\.maxItems"),
        ("maxItems: $passages", "maxItems: $chunks", r"output holds \$chunks, which .*Known here: \$passages"),
        ("type: object", "type: array", r"output is not the schema of an object"),
        (
            "    label:",
            "    verdict:",
            r"output\.properties asks for \['verdict', 'passages'\]\. Ask for \['label', 'passages'\]",
        ),
        ("  additionalProperties: false\n", "", r"output leaves additionalProperties open"),
        ("  required:", "  required: []\n  required:", r"not valid YAML \(key 'required' twice\)"),
        ("required: [label, passages]", "required: [label]", r"output does not require every property"),
        (", maxItems: $passages", "", r"output\.properties\.passages has no maxItems"),
        (", enum: [good, bad]", "", r"output\.properties\.label has no maxLength"),
        ("{{ claim }}", "{{ claim | shout }}", r"# User is no Jinja template \(No filter named 'shout'"),
        ("{{ claim }}", "{{ claim }}{% include '/etc/passwd' %}", r"v1\.md can't be filled in \(no loader"),
        ("{{ claim }}", "{{ claim.text }}", r"v1\.md can't be filled in \('str object' has no attribute 'text'"),
        (
            "{{ claim }}",
            "{{ claim.__class__.__mro__ }}",
            r"v1\.md can't be filled in \(access to attribute '__class__'",
        ),
    ],
)
def test_a_mistake_is_named_with_file_key_and_remedy(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(ConfigError, match=message) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert str(tmp_path / "v1.md") in str(caught.value)


def test_an_input_that_the_judge_does_not_give_is_a_mistake(tmp_path):
    with pytest.raises(ConfigError, match=r"inputs is \['passages', 'claim'\], but this judge gives \['claim'\]"):
        load(tmp_path, inputs=("claim",))


def test_properties_out_of_order_are_a_mistake(tmp_path):
    with pytest.raises(ConfigError, match=r"output\.properties asks for .*in this order"):
        load(tmp_path, fields=("passages", "label"))


def test_what_may_run_on_deep_inside_is_found(tmp_path):
    deep = GOOD.replace("items: {type: integer, minimum: 1, maximum: $passages}", "items: {anyOf: [{type: string}]}")
    with pytest.raises(ConfigError, match=r"output\.properties\.passages\.items\.anyOf\.0 has no maxLength"):
        load(tmp_path, deep)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_a_mistake_of_the_config_that_names_it(tmp_path, content):
    file = tmp_path / "v2.md"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"judge\.yaml: prompt names .*v2\.md, which .*relative to the judge's file"):
        _prompts.load(file, (), (), where="judge.yaml", key="prompt")


def test_released_prompts_never_change():
    lines = [line.split("  ", 1) for line in (RELEASED / "released.sha256").read_text().splitlines()]
    for digest, name in lines:
        found = hashlib.sha256((RELEASED / name).read_bytes()).hexdigest()
        assert found == digest, f"{name} is released: restore it, and write the change as its next version"
    names = [name for _, name in lines]
    assert len(set(names)) == len(names)
    assert sorted(names) == sorted(p.relative_to(RELEASED).as_posix() for p in RELEASED.rglob("v*.md"))


@pytest.mark.parametrize("name", ENTAILMENT)
def test_the_entailment_prompts_load_and_their_schemas_hold(name):
    prompt = entailment(name)
    valid = Draft202012Validator(prompt.schema({"passages": 3})).is_valid
    reasons = {"explanation": "Because."} if name.endswith("explained") else {}
    assert valid({**reasons, "label": "supported", "passages": [3, 1]})
    assert valid({**reasons, "label": "unsupported", "passages": []})
    assert not valid({**reasons, "label": "supported", "passages": [4]})
    assert not valid({**reasons, "label": "supported", "passages": [0]})
    assert not valid({**reasons, "label": "supported", "passages": [1, 1, 1, 1]})
    assert not valid({**reasons, "label": "abstained", "passages": []})
    assert not valid({"label": "supported", "passages": [1], "explanation": "a" * 601})
    assert not valid({**reasons, "label": "supported"})


@pytest.mark.parametrize("name", ENTAILMENT)
def test_the_entailment_prompts_end_with_the_claim_and_share_what_comes_before(name):
    passages = _fence.blocks("passage", ["A long text.", "Another."])
    one, other = (
        entailment(name).fill(9, {"passages": 2}, passages=passages, claim=_fence.block("claim", c))
        for c in ("It is.", "No.")
    )
    assert one.system == other.system
    assert one.user.endswith("<claim>\nIt is.\n</claim>")
    assert one.user.partition("<claim>")[0] == other.user.partition("<claim>")[0]
    assert one.user.startswith(passages)


def test_tasks_that_read_the_same_passages_share_all_that_comes_before_what_is_asked():
    # So that an engine reads a trace's passages once for all of them.
    passages = _fence.blocks("passage", ["A long text.", "Another."])
    prompts = []
    for name, rest in {**dict.fromkeys(ENTAILMENT, ("claim",)), "relevance": ("question", "answer")}.items():
        file = RELEASED / name / "v1.md"
        prompt = _prompts.load(file, ("passages", *rest), None, ("passages",), where="", key="")
        prompts.append(prompt.fill(9, {"passages": 2}, passages=passages, **dict.fromkeys(rest, "x")))
    assert len({a.system for a in prompts}) == 1
    assert {a.user.partition("Task:")[0] for a in prompts} == {f"{passages}\n\n"}
    assert len(prompts[0].system) / 4 < 400  # tokens, at about four characters each
