"""Classification by real vLLM on the CPU: the numbers of transformers, and nothing left behind.

A load takes some 20 seconds, so there are few. Tests run in any order, beside those of other files.
"""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import yaml
from conftest import in_process, until
from kit.models.classifiers import PAIRS, make
from kit.root import ROOT

from tasks import judges
from tasks.core.errors import EngineError
from tasks.core.keys import request_key
from tasks.core.types import Request
from tasks.engines.classifier import ClassifierConfig, open_classifier
from tasks.engines.vllm._host import Host
from tasks.engines.vllm.classifier import VllmClassifier

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make .venv/vllm"),
]
SHIPPED = ROOT / "configs/judges/nli.yaml"
NEAR = 1e-3  # on probabilities, in float32
GONE_WITHIN_S = 60


def config(folder, **options):
    return ClassifierConfig(model=str(folder), **{"engine": "vllm_offline", "max_tokens": 100, **options})


def by_transformers(folder, pairs, **options):
    own = open_classifier(config(folder, engine="transformers_cpu", **options))
    return own.classify(pairs)


def engines():
    """vLLM's processes that descend from this one."""
    return [p for p in psutil.Process().children(recursive=True) if "resource_tracker" not in " ".join(p.cmdline())]


@pytest.fixture
def bert(tiny):
    with in_process(), contextlib.closing(VllmClassifier(config(tiny("bert")))) as made:
        yield made


def test_bert_is_classified_as_by_transformers(bert, tiny):
    found, expected = bert.classify(PAIRS), by_transformers(tiny("bert"), PAIRS)
    assert np.abs(found.probabilities - expected.probabilities).max() < NEAR
    assert found.probabilities.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert found.tokens.tolist() == expected.tokens.tolist()
    assert bert.labels == open_classifier(config(tiny("bert"), engine="transformers_cpu")).labels


def test_more_pairs_than_a_batch_keep_their_order(bert, tiny):
    pairs = [("apples lower blood pressure " * (1 + n % 19), "the customer canceled") for n in range(400)]
    expected = by_transformers(tiny("bert"), pairs[:19]).probabilities
    found = bert.classify(pairs).probabilities
    assert np.abs(found - expected[np.arange(400) % 19]).max() < NEAR


def test_no_pairs_keep_their_shape(bert):
    assert bert.classify([]).probabilities.shape == (0, 3)


def test_close_ends_its_processes_and_a_template_is_read_as_by_transformers(tiny):
    before = engines()
    template = "{premise}</s>{hypothesis}"
    own = VllmClassifier(config(tiny("roberta"), template=template))
    try:
        found = own.classify(PAIRS).probabilities
        assert len(engines()) > len(before)
    finally:
        own.close()
    assert engines() == before
    assert np.abs(found - by_transformers(tiny("roberta"), PAIRS, template=template).probabilities).max() < NEAR


def test_a_killed_run_leaves_no_process_and_modernbert_is_classified_as_by_transformers(tiny):
    # In a process of its own: it is killed while the model is loaded. A Ctrl+C before that, which goes to all processes
    # of the terminal, is the owner's affair (this one ignores it), and the engine goes on with its imports.
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: None)\n"
        "from tasks.engines.classifier import ClassifierConfig, open_classifier\n"
        "from kit.models.classifiers import PAIRS\n"
        "if __name__ == '__main__':\n"
        "    own = open_classifier(ClassifierConfig(model=sys.argv[1], engine='vllm_offline', max_tokens=100))\n"
        "    print(own.classify(PAIRS).probabilities.tolist(), flush=True)\n"
        "    time.sleep(600)\n"
    )
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.Popen(
        [sys.executable, "-c", code, tiny("modernbert")],
        stdout=subprocess.PIPE,
        env=where,
        text=True,
        start_new_session=True,
    )
    with run:
        until(lambda: any("spawn_main" in " ".join(p.cmdline()) for p in psutil.Process(run.pid).children()))
        os.killpg(run.pid, signal.SIGINT)
        found = np.array(eval(run.stdout.readline()))
        left = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(signal.SIGKILL)
    assert left
    assert not psutil.wait_procs(left, timeout=GONE_WITHIN_S)[1]
    assert np.abs(found - by_transformers(tiny("modernbert"), PAIRS).probabilities).max() < NEAR


def test_after_a_signal_the_engine_is_not_waited_for():
    given = []
    engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=lambda **options: given.append(options)))
    for error in (KeyboardInterrupt, EngineError):
        host = Host(config("./model"), "classifier", "", "")
        host.llm = SimpleNamespace(llm_engine=engine)
        with pytest.raises(error), contextlib.closing(host):
            raise error
    # Seconds in which it may end by itself; None is vLLM's own five.
    assert given == [{"timeout": 0}, {"timeout": None}]


def test_a_crash_is_an_engine_error_and_no_text_is_printed(tmp_path, capfd):
    # Heads of 16 numbers are more than vLLM's attention on the CPU can do, which it finds out when it runs.
    before = engines()
    own = VllmClassifier(config(make(tmp_path / "model", "bert", num_attention_heads=4)))
    with pytest.raises(EngineError, match=r"vLLM failed on 2 pairs \(EngineDeadError\)") as raised:
        own.classify([("the customer canceled", "secret"), ("pricing", "apples")])
    printed = "".join(capfd.readouterr())
    assert "head_dim=16" in printed  # the cause, for whoever has to fix it
    ids = str(own._encoder.ids([("the customer canceled", "secret")])[0])
    for text in ("secret", "pricing", "the customer canceled", ids, ids.strip("[]")):
        assert text not in printed
        assert text not in str(raised.value)
    assert own._host.llm is None
    assert engines() == before


def test_a_model_that_vllm_does_not_serve_names_the_engine_that_does(tiny):
    with pytest.raises(EngineError, match=r"does not serve classifier .*Deberta.*Use engine transformers_cpu"):
        VllmClassifier(config(tiny("deberta"))).classify(PAIRS)


def test_without_vllm_the_error_says_what_to_install(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)  # as if it were not there
    with pytest.raises(EngineError, match=r"needs the package 'vllm'\. Run: pip install -r requirements-gpu\.lock"):
        VllmClassifier(config(tiny("bert"))).classify(PAIRS)


def test_the_embedded_judge_gives_the_same_verdicts(tmp_path):
    # The judge's own numbers, fusion included, and not only the model's.
    texts = [
        ("Order #4521 was canceled by the customer on March 14, 2024.", "The customer canceled on 2024-03-14."),
        ("Order #4521 was canceled by the customer on March 14, 2024.", "The customer did not cancel."),
        ("The lake lies at 400 m. " * 60, "The lake lies at 500 m."),
        ("The customer canceled on March 14, 2024.", "The customer canceled because of pricing."),
    ]
    requests = [Request(request_key(p, h), p, h) for p, h in texts]
    settings = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    verdicts = {}
    for engine in ("transformers_cpu", "vllm_offline"):
        file = tmp_path / f"{engine}.yaml"
        classifier = settings["classifier"] | {"engine": engine, "dtype": "float32"}
        file.write_text(yaml.safe_dump(settings | {"classifier": classifier}))
        with in_process(), contextlib.closing(judges.load(file)) as judge:
            verdicts[engine] = judge.version, judge.judge(requests)
    (version, expected), (version_too, found) = verdicts.values()
    assert version == version_too
    assert [v.label for v in found] == [v.label for v in expected]
    for a, b in zip(found, expected, strict=True):
        assert abs(a.p_supported - b.p_supported) < NEAR
        assert abs(a.p_contradicted - b.p_contradicted) < NEAR
