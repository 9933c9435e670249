"""A classifier as an ONNX graph: exports it from the model's files, compares it with the model, quantizes and runs it.

The graph turns the token ids of one pair, unpadded, into its logits. Left out: where graphs are stored
(`classifier.py`), token types other than zero, and graphs above 2 GB, which ONNX can't store in one file.
"""

import contextlib
import importlib
import logging
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasks.core import keys
from tasks.core.errors import EngineError
from tasks.engines import _models
from tasks.engines._classifiers import WHAT, ClassifierConfig
from tasks.engines._encoder import HASHED_FILES, Encoder

# Weights are signed, with one scale for each output channel; one scale for each matrix loses twice as much accuracy.
# Embeddings are looked up, not multiplied, so int8 would cost accuracy and save no time.
SCHEME = "MatMul: weights s8 per channel, activations u8 per pair"
RULES = 2  # raised when this module makes a different graph
OPSET = 20  # the first with Gelu as a single operator
NOISY = ("torch.onnx", "onnxscript", "onnx_ir")
CLOSE = 1e-3  # largest difference of logits from the model's; an exporter that misreads a model is off by far more
EXAMPLE = "The order was canceled by the customer on March 14."
STAMP = "weights"


def write(config: ClassifierConfig, encoder: Encoder, path: Path) -> None:
    """Write the graph of a config's model with the config's dtype, float32 or int8.

    Raises:
        EngineError: The model can't be loaded or exported, or a package is missing.
        OSError: The file can't be written.
    """
    package("onnxscript")
    onnx = package("onnx")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written to a temporary folder and then renamed, so that readers see a whole file or none.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-") as folder, _quiet():
        made = Path(folder) / "graph.onnx"
        graph = _export(config, encoder)
        if config.dtype == "int8":
            _quantize(graph, made)
        else:
            onnx.save(graph, made)
        made.replace(path)


def session(graph: Path | bytes, *, vnni: bool | None = None) -> Any:  # noqa: ANN401
    """A session that runs each call on the calling thread; calls may overlap.

    Args:
        vnni: Whether the processor adds 8-bit products in 32 bits; None detects it.
    """
    runtime = package("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors
    # Older processors add products of u8 and s8 in 16 bits, which can overflow. With this option they multiply u8 by
    # u8, at half the speed of newer processors.
    precise = not (_vnni() if vnni is None else vnni)
    options.add_session_config_entry("session.x64quantprecision", str(int(precise)))
    # On CPUs the fused operator is slower than the separate addition and normalization.
    disabled = ["SkipLayerNormFusion"]
    return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled)


def run(session: Any, ids: Sequence[int]) -> npt.NDArray[np.float64]:  # noqa: ANN401
    """Logits (classes,) of one pair's token ids.

    Raises:
        EngineError: The runtime fails.
    """
    try:
        logits = session.run(["logits"], {"input_ids": np.array([ids], dtype=np.int64)})[0][0]
    except Exception as error:  # onnxruntime's errors have no common base
        raise EngineError(
            f"the {WHAT} failed on a pair of {len(ids)} tokens ({type(error).__name__}). Free memory or lower threads."
        ) from error
    found: npt.NDArray[np.float64] = logits.astype(np.float64)
    return found


def weights(config: ClassifierConfig) -> dict[str, str]:
    """Hashes of the model's files, or a hub model's name and commit."""
    found: Any = _models.identity(config, WHAT, HASHED_FILES)["weights"]
    return {str(name): str(digest) for name, digest in found.items()}


def stamp(config: ClassifierConfig) -> str:
    """Identifies the weights of a graph. Tokenizer and class names may change without changing it."""
    return keys.version({name: d for name, d in weights(config).items() if name.endswith((".safetensors", ".bin"))})


def stamped(session: Any) -> str | None:  # noqa: ANN401
    """The `stamp` stored in a graph."""
    found: str | None = session.get_modelmeta().custom_metadata_map.get(STAMP)
    return found


def package(name: str) -> Any:  # noqa: ANN401
    """Import a module of the extra `onnx`, or raise an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise missing(error.name or name) from error


def missing(name: str) -> EngineError:
    """The error for a missing package of the extra `onnx`."""
    return EngineError(f"engine onnx_cpu needs the package {name!r}. Run: pip install 'leadline[onnx]'")


def reason(error: Exception) -> str:
    """Class and first line of a library's error."""
    return f"{type(error).__name__}: {_models.reason(error)}"


def _export(config: ClassifierConfig, encoder: Encoder) -> Any:  # noqa: ANN401
    """The float32 graph: token ids (1, tokens) to logits (1, classes)."""
    import torch  # noqa: PLC0415 - takes two seconds, which most commands can avoid

    short, long = encoder.ids([(EXAMPLE, EXAMPLE), (EXAMPLE * 8, EXAMPLE)])
    model = _load(config)
    try:
        exported: Any = torch.onnx.export(
            model,
            kwargs={"input_ids": torch.tensor([short])},
            input_names=["input_ids"],
            output_names=["logits"],
            dynamic_shapes={"input_ids": {1: torch.export.Dim.DYNAMIC}},
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        graph = exported.model_proto
        made = session(graph.SerializeToString())
    except EngineError:
        raise
    except Exception as error:  # torch's and onnxruntime's errors have no common base
        raise EngineError(
            f"{WHAT} {config.model!r} can't be exported to ONNX ({reason(error)}). Use engine transformers_cpu."
        ) from error
    for ids in (short, long):
        with torch.inference_mode():
            expected = model(input_ids=torch.tensor([ids])).logits[0].numpy()
        off = float(np.abs(run(made, ids) - expected).max())
        if not off <= CLOSE * max(1.0, float(np.abs(expected).max())):
            raise EngineError(
                f"{WHAT} {config.model!r}, exported to ONNX, differs from the model's logits by {off:.2g}. "
                "Use engine transformers_cpu."
            )
    graph.metadata_props.add(key=STAMP, value=stamp(config))
    return graph


def _load(config: ClassifierConfig) -> Any:  # noqa: ANN401
    kind = _models.transformers().AutoModelForSequenceClassification
    name, options = _models.source(config, WHAT)
    # Eager attention gives the simplest graph; the runtime fuses the patterns it knows.
    options |= {"trust_remote_code": config.trust_remote_code, "attn_implementation": "eager"}
    try:
        return kind.from_pretrained(name, dtype="float32", **options).eval()
    except Exception as error:
        raise _models.load_error(config, WHAT, error) from error


def _quantize(graph: Any, path: Path) -> None:  # noqa: ANN401
    """Write the graph with int8 products of activations and weights, as described by `SCHEME`."""
    quantization = package("onnxruntime.quantization")
    _halve_tables(graph)
    # The exporter records shapes of weights before it transposes them, and the quantizer would check against these.
    del graph.graph.value_info[:]
    quantization.quantize_dynamic(
        graph,
        path,
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        weight_type=quantization.QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True},
    )


def _halve_tables(graph: Any) -> None:  # noqa: ANN401
    """Store embeddings in half precision if that loses nothing, which halves the file of such weights."""
    onnx = package("onnx")
    tables = {t.name: t for t in graph.graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    nodes = list(graph.graph.node)
    del graph.graph.node[:]
    for node in nodes:
        graph.graph.node.append(node)
        table = tables.get(node.input[0]) if node.op_type == "Gather" else None
        if table is None:
            continue
        values = onnx.numpy_helper.to_array(table)
        half = values.astype(np.float16)
        if np.array_equal(half.astype(np.float32), values):
            name = node.output[0]
            graph.graph.node[-1].output[0] = f"{name}_half"
            graph.graph.node.append(onnx.helper.make_node("Cast", [f"{name}_half"], [name], to=onnx.TensorProto.FLOAT))
            table.CopyFrom(onnx.numpy_helper.from_array(half, table.name))


def _vnni() -> bool:
    """Whether the processor is known to have VNNI instructions (on Linux)."""
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress exporters' warnings that users can do nothing about: skipped operators, packages that are missing."""

    def none(record: logging.LogRecord) -> bool:  # noqa: ARG001
        return False

    # The quantizer uses the root logger directly. A filter there does not affect records of other loggers.
    root = logging.getLogger()
    loggers = [logging.getLogger(name) for name in NOISY]
    levels = [logger.level for logger in loggers]
    root.addFilter(none)
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.removeFilter(none)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
