"""What ships: half precision says nearly what the trained model says, and the formats beside it cost what they say."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.models import bert
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertForSequenceClassification

from training import export

PAIRS = bert.pairs(20)
ROUNDING = 2.0**-11  # of half precision, relative
SMALLEST = 2.0**-25  # half of its smallest step, near zero


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return bert.base(tmp_path_factory.mktemp("base"), spread=0.3)


@pytest.fixture(scope="module")
def model(base, tmp_path_factory):
    """A classifier on that base, its encoder a little away from it and its answers far apart."""
    torch.manual_seed(1)
    names = {0: "entailment", 1: "neutral", 2: "contradiction"}
    made = BertForSequenceClassification.from_pretrained(base, num_labels=3, id2label=names, dtype=torch.float32)
    with torch.no_grad():
        made.classifier.weight.normal_(std=1)
        for name, tensor in made.bert.encoder.named_parameters():
            if tensor.ndim > 1:
                tensor.add_(0.05 * torch.randn(tensor.shape[0], 3) @ torch.randn(3, tensor.shape[1]))
            elif "LayerNorm" not in name:
                tensor.add_(0.1 * torch.randn_like(tensor))
    folder = tmp_path_factory.mktemp("model")
    made.save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return folder


def probabilities(folder):
    """What a folder's model says of some pairs, as whoever loads it without further ado gets it."""
    found = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = tokenizer([p.premise for p in PAIRS], [p.hypothesis for p in PAIRS], padding=True, return_tensors="pt")
    with torch.inference_mode():
        return torch.softmax(found(**rows).logits.double(), dim=-1), found.dtype


# What ships -----------------------------------------------------------------------------------------------------------


def test_the_shipped_folder_loads_in_half_precision_and_says_nearly_the_same(model, tmp_path):
    export.export(model, tmp_path)
    before, dtype = probabilities(model)
    assert dtype == torch.float32
    after, dtype = probabilities(tmp_path)
    assert dtype == torch.float16
    # A dozen layers of sums that are each rounded to 0.0005 move logits of up to 10 by a few hundredths at most, and a
    # probability by at most a quarter of that.
    assert (before - after).abs().max() < 0.01
    assert before.std(dim=0).min() > 0.05  # the pairs are told apart, so equal answers mean something


def test_the_shipped_folder_is_whole_and_half_the_size(model, tmp_path):
    (tmp_path / "README.md").write_text("The card.", encoding="utf-8")
    export.export(model, tmp_path)
    export.export(model, tmp_path)  # over an older one
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "The card."
    was, now = load_file(model / export.WEIGHTS), load_file(tmp_path / export.WEIGHTS)
    assert {n: t.shape for n, t in was.items()} == {n: t.shape for n, t in now.items()}
    assert {t.dtype for t in now.values()} == {torch.float16}
    config, trained = (json.loads((f / "config.json").read_text(encoding="utf-8")) for f in (tmp_path, model))
    assert config == {**trained, "dtype": "float16"}
    text = PAIRS[0].premise
    assert AutoTokenizer.from_pretrained(tmp_path)(text) == AutoTokenizer.from_pretrained(model)(text)


def test_the_trained_folder_is_left_as_it_was(model, tmp_path):
    before = {p.name: p.read_bytes() for p in model.iterdir()}
    export.export(model, tmp_path)
    assert {p.name: p.read_bytes() for p in model.iterdir()} == before


def test_half_precision_rounds_and_leaves_whole_numbers_alone():
    found = export.half({"a": torch.tensor([1.0, 1 / 3]), "ids": torch.tensor([[1, 70_000]])})
    assert found["a"].tolist() == [1.0, pytest.approx(1 / 3, rel=ROUNDING)]
    assert found["ids"].tolist() == [[1, 70_000]]


# The other formats ----------------------------------------------------------------------------------------------------

SIZES = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**31))


def matrix(rows, columns, seed, scale=1.0):
    return scale * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


@settings(deadline=None)
@given(SIZES, st.floats(1e-3, 1e3))
def test_int8_is_off_by_half_a_step_at_most(size, scale):
    was = matrix(*size, scale)
    found, _ = export.int8({"m": was, "v": was[0]})
    # 255 steps over a row's range, from minus its largest value to that value: half a step is its largest / 254. What
    # float32 rounds on the way is far less than a hundredth of that.
    allowed = was.abs().amax(dim=1, keepdim=True) / 254 * 1.01
    assert ((found["m"] - was).abs() <= allowed).all()
    assert ((found["v"] - was[0]).abs() <= was[0].abs() * ROUNDING + SMALLEST).all()
    # One of at most 255 values per row, the largest kept as it is.
    steps = found["m"] / (was.abs().amax(dim=1, keepdim=True) / 127)
    assert (steps - steps.round()).abs().max() < 1e-3
    assert found["m"].abs().amax(dim=1) == pytest.approx(was.abs().amax(dim=1), rel=1e-6)


def test_int8_keeps_a_row_of_zeros():
    found, _ = export.int8({"m": torch.zeros(2, 3)})
    assert not found["m"].any()


def test_the_bytes_of_int8():
    # 5 x 3 matrix: 15 bytes and 5 scales of four; 7 values in half precision: 14 bytes.
    assert export.int8({"m": torch.ones(5, 3), "v": torch.ones(7)})[1] == 15 + 20 + 14


@settings(deadline=None)
@given(SIZES, st.integers(1, 6), st.floats(1e-3, 10))
def test_a_low_rank_difference_is_off_by_what_it_leaves_out(size, rank, scale):
    rows, columns, seed = size
    origin, change = matrix(rows, columns, seed), matrix(rows, columns, seed + 1, scale)
    found, _ = export.difference({"m": origin + change}, {"m": origin}, rank)
    left = torch.linalg.svdvals(change)[rank:].square().sum().sqrt()
    # The best approximation of a rank is off by the singular values left out (Eckart and Young), here in the Frobenius
    # norm. Its factors US and V are rounded to half precision: US by ROUNDING of its norm, which V, orthonormal, leaves
    # as it is; V by ROUNDING of sqrt(rank), which US stretches by its own norm at most. Then each value's smallest step.
    norm, kept = change.norm(), min(rank, rows, columns)
    rounded = norm * ROUNDING * (1 + kept**0.5) * 1.01
    steps = SMALLEST * (rows * kept) ** 0.5 + SMALLEST * (columns * kept) ** 0.5 * norm
    noise = 1e-5 * (origin.norm() + norm)  # float32, in sums and in the decomposition
    assert (found["m"] - origin - change).norm() <= left + rounded + steps + noise


def test_a_difference_of_low_rank_is_kept_nearly_whole():
    origin, change = matrix(40, 30, 0), matrix(40, 2, 1) @ matrix(2, 30, 2)
    found, size = export.difference({"m": origin + change}, {"m": origin}, 2)
    assert (found["m"] - origin - change).norm() < 0.002 * change.norm()
    assert size == 2 * 2 * (40 + 30)  # two factors, 40 x 2 and 2 x 30, two bytes a value


def test_what_equals_the_base_costs_nothing_and_what_it_lacks_is_kept_in_half_precision():
    same, other = matrix(4, 4, 0), matrix(4, 4, 1)
    tensors = {"bert.same": same, "bert.vector": torch.full((5,), 1 / 3), "classifier.weight": other}
    found, size = export.difference(tensors, {"same": same.clone(), "vector": torch.zeros(5)}, 1)
    assert torch.equal(found["bert.same"], same)
    assert torch.equal(found["bert.vector"], torch.full((5,), 1 / 3).half().float())
    assert torch.equal(found["classifier.weight"], other.half().float())
    assert size == 2 * 5 + 2 * 16


def test_every_format_of_a_model_loads_again_and_their_sizes_add_up(model, base, tmp_path):
    found = export.variants(model, base)
    tensors = load_file(model / export.WEIGHTS)
    count = sum(t.numel() for t in tensors.values())
    assert {name: size for name, (_, size) in found.items() if name in {"float32", "half precision"}} == {
        "float32": count * 4 / 1e6,
        "half precision": count * 2 / 1e6,
    }
    matrices = [t for t in tensors.values() if t.ndim > 1]
    whole, rows = sum(t.numel() for t in matrices), sum(len(t) for t in matrices)
    assert found["int8, weight only"][1] == pytest.approx((whole + 4 * rows + 2 * (count - whole)) / 1e6)
    expected, _ = probabilities(model)
    for i, (name, (weights, _)) in enumerate(found.items()):
        assert {n: t.shape for n, t in weights.items()} == {n: t.shape for n, t in tensors.items()}
        assert {t.dtype for t in weights.values()} == {torch.float32}
        reported, _ = probabilities(export.write(weights, model, tmp_path / str(i)))
        # The encoder is three ranks away from its base, so sixteen hold all of that.
        assert (reported - expected).abs().max() < (0.1 if name.startswith("int8") else 0.01), name
    assert torch.equal(found["float32"][0]["classifier.weight"], tensors["classifier.weight"])


def test_averaged_weights_are_the_means_and_load(model, tmp_path):
    tensors = load_file(model / export.WEIGHTS)
    other = export.write({name: -3 * t for name, t in tensors.items()}, model, tmp_path / "other")
    folder = export.average([model, other], tmp_path / "mean")
    found = load_file(folder / export.WEIGHTS)
    # Half of w and -3w together is -w.
    assert all(torch.allclose(found[name], -t) for name, t in tensors.items())
    assert BertForSequenceClassification.from_pretrained(folder).config.num_labels == 3
