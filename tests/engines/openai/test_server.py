"""A language model on servers: real ones on loopback that fail in every way, a stub, and vLLM's own."""

import asyncio
import contextlib
import gc
import importlib.util
import json
import os
import sys
import threading
import time
import traceback
from collections import Counter

import jsonschema
import pytest
from aiohttp import web
from conftest import free_port, serving
from kit.chat_server import answer, error, serve

from bench.accuracy import labeled
from tasks.core.errors import EngineError
from tasks.core.types import OUTAGE
from tasks.engines.generator import TOP, GeneratorConfig, Prompt, open_generator
from tasks.engines.openai._connections import MOST_BYTES, NoAnswerError
from tasks.engines.openai.server import Pauses, Queues, ServerGenerator, home

SCHEMA = {
    "type": "object",
    "properties": {
        "label": {"enum": ["supported", "partially_supported", "unsupported", "contradicted"]},
        "passages": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 9}, "maxItems": 3},
    },
    "required": ["label", "passages"],
    "additionalProperties": False,
}
SECRET = "the patient Erika Mustermann"  # of a trace: nothing of it may get out
KEY = "sk-4711-do-not-tell"
CALLS_WITHIN_S = 60  # far more than any test needs


@contextlib.contextmanager
def generator(*servers, model="/models/x", name="x", longest_s=60.0, **options):
    drawing = {k: options.pop(k) for k in ("temperature", "thinking", "thinking_tokens", "max_tokens") if k in options}
    urls = [server if isinstance(server, str) else server.url for server in servers]
    settings = {"urls": urls, "served_name": name, **options}
    config = GeneratorConfig(model=model, engine="openai_server", server=settings, **drawing)
    made = ServerGenerator(config, Pauses(first_s=0.002, longest_s=longest_s))
    try:
        yield made
    finally:
        made.close()


def prompt(n, evidence=SECRET):
    return Prompt("Judge.", f"{evidence} {n}", SCHEMA, 32, alternatives=True)


def texts(made):
    return [[reply.text for reply in one.replies] for one in made]


def failures(made):
    return [one.failure for one in made]


def first(*responses):
    """Answers the first requests so, and all later ones well."""
    left = list(responses)

    async def handle(server, body):
        if not left:
            return answer(body)
        response = left.pop(0)
        return await response(server, body) if callable(response) else response

    return handle


def always(make):
    async def handle(server, body):
        made = make(server, body)
        return await made if asyncio.iscoroutine(made) else made

    return handle


good = always(lambda _, body: answer(body))


def unused_url():
    return f"http://127.0.0.1:{free_port()}/v1"


async def dropped(server, body):
    server.request.transport.close()
    return web.Response()


async def dropped_midway(server, body):
    begun = web.StreamResponse(headers={"Content-Length": "1000"})
    await begun.prepare(server.request)
    await begun.write(b'{"choices":[')
    server.request.transport.close()
    return begun


async def never(server, body):
    await asyncio.Event().wait()


def test_replies_come_in_the_order_of_the_prompts():
    with serve(good) as server, generator(server) as model:
        assert texts(model.generate([prompt(n) for n in range(50)])) == [[str(n)] for n in range(50)]
        assert model.generate([]) == []


def test_the_engine_is_opened_by_its_name():
    with serve(good) as server:
        config = GeneratorConfig(
            model="/models/x", engine="openai_server", server={"urls": [server.url], "served_name": "x"}
        )
        model = open_generator(config)
        assert texts(model.generate([prompt(1)])) == [["1"]]
        model.close()


def test_tokens_are_counted():
    with serve(good) as server, generator(server) as model:
        (made,) = model.generate([prompt(1)])
        assert (made.tokens_in, made.tokens_cached, made.tokens_out) == (10, 0, 2)


def test_as_many_requests_are_in_flight_as_the_config_says():
    # No request is answered before 4 are there, so that fewer would hang; and the server counts them.
    async def four(server, body):
        server.waiting = [*getattr(server, "waiting", []), event := asyncio.Event()]
        if len(server.waiting) == 4:
            for each in server.waiting:
                each.set()
            server.waiting = []
        await event.wait()
        return answer(body)

    with serve(four) as server, generator(server, concurrency=4) as model:
        assert len(model.generate([prompt(n) for n in range(20)])) == 20
        assert server.most_in_flight == 4


def test_connections_are_kept_between_calls():
    with serve(good) as server, generator(server, concurrency=3) as model:
        for _ in range(4):
            model.generate([prompt(n) for n in range(9)])
        assert len(server.connections) <= 3


def test_a_closed_generator_opens_again_and_threads_take_turns():
    with serve(good) as server, generator(server) as model:
        made = []
        for _ in range(2):
            thread = threading.Thread(target=lambda: made.append(texts(model.generate([prompt(7)]))))
            thread.start()
            thread.join(CALLS_WITHIN_S)
            model.close()
            model.close()
        assert made == [[["7"]], [["7"]]]


def test_samples_are_asked_for_at_once():
    with serve(good) as server, generator(server, temperature=1) as model:
        assert texts(model.generate([prompt(1)], samples=3)) == [["1", "1", "1"]]
        assert [body["n"] for body in server.asked] == [3]


@pytest.mark.parametrize(
    "fault",
    [error(500), error(503), error(429), error(408), web.Response(text="<html>"), web.json_response({"choices": []}), dropped, dropped_midway, never],
    ids=["500", "503", "429", "408", "no-json", "no-choices", "dropped", "dropped-midway", "timeout"],
)  # fmt: skip
def test_what_may_pass_is_asked_again(fault):
    with serve(first(fault)) as server, generator(server, retries=1, timeout_s=0.5) as model:
        assert texts(model.generate([prompt(1)])) == [["1"]]
        assert server.asked == [server.asked[0]] * 2


def test_a_server_that_asks_to_wait_is_waited_for():
    with serve(first(error(429, Retry_After="1"))) as server, generator(server, retries=1) as model:
        assert texts(model.generate([prompt(1)])) == [["1"]]
        assert server.times[1] - server.times[0] >= 1


def test_no_server_is_waited_for_without_end():
    with serve(first(error(503, Retry_After="9999"))) as server, generator(server, retries=1, longest_s=0.1) as model:
        start = time.monotonic()
        assert texts(model.generate([prompt(1)])) == [["1"]]
        assert time.monotonic() - start < CALLS_WITHIN_S


def test_a_wait_that_is_no_number_is_none():
    with serve(first(error(429, Retry_After="Wed, 21 Oct 2099 07:28:00 GMT"))) as server, generator(server) as model:
        assert texts(model.generate([prompt(1)])) == [["1"]]


def test_what_still_fails_after_all_retries_is_an_outage():
    def poison(server, body):
        return error(500) if body["messages"][1]["content"].endswith(" 3") else answer(body)

    with serve(always(poison)) as server, generator(server, retries=2, concurrency=2) as model:
        made = model.generate([prompt(n) for n in range(6)])
        assert failures(made) == [None, None, None, OUTAGE, None, None]
        assert len(server.asked) == 5 + 3


def test_prompts_that_are_too_long_fail_by_themselves():
    def short(server, body):
        if len(body["messages"][1]["content"]) > 300:
            return error(400, f"This model's maximum context length is 9 tokens. {SECRET}")
        return answer(body)

    with serve(always(short)) as server, generator(server) as model:
        made = model.generate([prompt(1, SECRET * 20), prompt(2)])
        assert failures(made) == ["too_long", None]
        assert len(server.asked) == 2


@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_prompt_fails_by_itself(status):
    def picky(server, body):
        return error(status, SECRET) if SECRET in body["messages"][1]["content"] else answer(body)

    with serve(always(picky)) as server, generator(server, concurrency=1) as model:
        # Nothing was accepted before it: a harmless prompt tells the prompt's fault from ours.
        assert failures(model.generate([prompt(1)])) == ["refused"]
        assert len(server.asked) == 2
        assert failures(model.generate([prompt(n) for n in range(3)])) == ["refused"] * 3
        assert len(server.asked) == 5


def test_a_server_that_refuses_everything_ends_the_call():
    def refuse(server, body):
        return web.json_response({"error": {"message": SECRET, "param": "top_logprobs"}}, status=400)

    with serve(always(refuse)) as server, generator(server, concurrency=8) as model:
        with pytest.raises(EngineError, match=r"refuses every request \(HTTP 400, because of top_logprobs\)") as caught:
            model.generate([prompt(n) for n in range(500)])
        assert len(server.asked) <= 2 * 8
        quotes_nothing(caught.value)


def test_a_server_that_lets_nobody_in_names_the_variable(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with serve(good, key="another", models=None) as server:
        with generator(server, api_key_env="MY_KEY") as model:
            with pytest.raises(
                EngineError, match=r"does not accept the key \(HTTP 401\)\. Check the key in \$MY_KEY\."
            ) as caught:
                model.generate([prompt(1)])
            quotes_nothing(caught.value)
        with generator(server) as model:
            with pytest.raises(EngineError, match=r"server\.api_key_env"):
                model.generate([prompt(1)])


def test_the_key_is_sent(monkeypatch):
    monkeypatch.setenv("MY_KEY", f"{KEY}\n")
    with serve(good, key=KEY) as server, generator(server, api_key_env="MY_KEY") as model:
        assert texts(model.generate([prompt(1)])) == [["1"]]


@pytest.mark.parametrize("value", [None, "", " ", "a\nb"])
def test_a_key_that_is_not_set_is_missed_before_anything_is_sent(value, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with serve(good) as server, generator(server, api_key_env="MY_KEY") as model:
        with pytest.raises(EngineError, match=r"\$MY_KEY holds no key\. Set it\."):
            model.generate([prompt(1)])
        assert server.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "gpu-1:8000/v1",
        "ftp://gpu-1/v1",
        "http://me:secret@gpu-1/v1",
        "http:///v1",
        "http://gpu-1/v1?key=secret",
        "http://[::1/v1",
    ],
)
def test_a_url_that_is_none_is_named_by_its_place(url):
    with generator("http://127.0.0.1:9/v1", url) as model:
        with pytest.raises(EngineError, match=r"^server\.urls\[1\] is not like http://host:8000/v1") as caught:
            model.generate([prompt(1)])
        assert "secret" not in str(caught.value)


def test_a_model_that_is_not_served_is_missed_before_the_first_prompt():
    with serve(good, models=["a/b", "c"]) as server, generator(server) as model:
        with pytest.raises(EngineError, match=r"does not serve 'x'; it serves 'a/b', 'c'\. Set server\.served_name"):
            model.generate([prompt(1)])
        assert server.asked == []


def test_a_model_that_is_gone_is_missed_later():
    with serve(first(error(404)), models=None) as server, generator(server) as model:
        with pytest.raises(EngineError, match=r"does not serve 'x'; it names no models"):
            model.generate([prompt(1)])


def test_a_server_that_has_the_model_and_no_completions_is_at_another_address():
    with serve(first(error(404))) as server, generator(server) as model:
        with pytest.raises(EngineError, match=r"/v1/chat/completions answers HTTP 404\. Check server\.urls\."):
            model.generate([prompt(1)])


def test_an_answer_without_end_is_not_read_to_its_end():
    huge = web.Response(body=b" " * (MOST_BYTES + 1))
    with serve(first(lambda *_: huge)) as server, generator(server) as model:
        assert texts(model.generate([prompt(1)])) == [["1"]]
        assert len(server.asked) == 2


def test_a_server_without_a_list_of_models_is_asked_all_the_same():
    with serve(good, models=None) as server, generator(server) as model:
        assert texts(model.generate([prompt(1)])) == [["1"]]


def test_an_address_that_answers_otherwise_is_no_server():
    with serve(always(lambda *_: web.Response(status=405))) as server, generator(server) as model:
        with pytest.raises(EngineError, match=r"/v1/chat/completions answers HTTP 405\. Check server\.urls\."):
            model.generate([prompt(1)])


def test_the_name_is_the_model_s_own_unless_another_is_given():
    revision = "0" * 40
    settings = {"urls": [unused_url()]}
    with serve(good, models=["org/model"]) as server:
        settings["urls"] = [server.url]
        config = GeneratorConfig(model="org/model", revision=revision, engine="openai_server", server=settings)
        model = ServerGenerator(config, Pauses(first_s=0.002))
        model.generate([prompt(1)])
        model.close()
        assert server.asked[0]["model"] == "org/model"


def test_no_server_at_all_is_worth_another_run():
    with generator(unused_url(), unused_url()) as model:
        with pytest.raises(
            NoAnswerError, match=r"no server answers: http://127.*; http://127.*Start it, or check server"
        ) as caught:
            model.generate([prompt(1)])
        assert caught.value.transient
        quotes_nothing(caught.value)


def test_what_nobody_answers_ends_soon_and_keeps_nothing():
    with serve(always(lambda *_: error(500, SECRET))) as server, generator(server, concurrency=4, retries=1) as model:
        with pytest.raises(
            NoAnswerError, match=r"no server answered any of 1000 prompts \(the last: .*HTTP 500\)"
        ) as caught:
            model.generate([prompt(n) for n in range(1000)])
        # 20 failures in a row, and what 4 workers had under way.
        assert 20 <= len(server.asked) <= 20 + 2 * 4
        quotes_nothing(caught.value)


def test_a_server_without_room_for_anything_is_given_up_too():
    with serve(always(lambda *_: error(429))) as server, generator(server, concurrency=4, retries=1) as model:
        with pytest.raises(NoAnswerError, match="HTTP 429"):
            model.generate([prompt(n) for n in range(1000)])
        assert len(server.asked) <= 2 * (20 + 4)


def test_a_malformed_server_is_an_outage_that_is_not_quoted():
    with serve(always(lambda *_: web.Response(text=SECRET))) as server, generator(server, retries=0) as model:
        with pytest.raises(NoAnswerError, match="not a chat completion") as caught:
            model.generate([prompt(1)])
        quotes_nothing(caught.value)


def test_the_rest_is_left_when_all_servers_die_midway():
    async def mortal(server, body):
        if len(server.asked) > 10:
            return await dropped(server, body)
        return answer(body)

    with serve(mortal) as server, generator(server, concurrency=2, retries=1) as model:
        made = model.generate([prompt(n) for n in range(1000)])
        assert Counter(failures(made)) == {None: 10, OUTAGE: 990}
        assert len(server.asked) < 10 + 30
        server.handle = good
        assert set(failures(model.generate([prompt(n) for n in range(30)]))) == {None}  # back again


def test_a_server_that_was_never_there_costs_nothing_but_speed():
    with serve(good) as server, generator(unused_url(), server, retries=0) as model:
        assert failures(model.generate([prompt(n, f"{n:600}") for n in range(100)])) == [None] * 100


def test_the_work_of_a_server_that_dies_is_done_by_the_others():
    async def mortal(server, body):
        if len(server.asked) > 20:
            return await dropped(server, body)
        return answer(body)

    prompts = [prompt(n, f"{n:600}") for n in range(300)]
    with serve(mortal) as dies, serve(good) as lives, generator(dies, lives, concurrency=4, retries=2) as model:
        made = model.generate(prompts)
        assert texts(made) == [[str(n)] for n in range(300)]
        # Spared once it had failed: asked again now and then at most.
        assert len(dies.asked) < 20 + 10
        assert len(lives.asked) >= 280


def test_prompts_with_equal_evidence_meet_on_one_server_and_servers_share_the_work():
    prompts = [prompt(claim, f"evidence {n} " * 60) for n in range(200) for claim in range(5)]
    homes = [home(one, 3) for one in prompts]
    assert all(len({*homes[n : n + 5]}) == 1 for n in range(0, 1000, 5))
    # 200 evidences fall on 3 servers by chance: 67 each, standard deviation 6.7.
    assert all(abs(count - 1000 / 3) < 5 * 4 * 6.7 for count in Counter(homes).values())


def test_a_server_takes_its_own_prompts_in_order_and_then_those_of_the_fullest():
    prompts = [prompt(n, f"evidence {n // 4} " * 60) for n in range(80)]
    own = {s: [n for n, one in enumerate(prompts) if home(one, 3) == s] for s in range(3)}
    queues = Queues(prompts, 3)
    assert [queues.take(0) for _ in own[0]] == own[0]
    fuller = max((1, 2), key=lambda s: len(own[s]))
    assert queues.take(0) == own[fuller][-1]
    left = [queues.take(0) for _ in range(80)]
    assert sorted([*own[0], own[fuller][-1], *[n for n in left if n is not None]]) == list(range(80))
    assert queues.take(1) is None


def test_all_servers_are_busy_even_where_all_prompts_begin_alike():
    with serve(good) as one, serve(good) as two, generator(one, two, concurrency=2) as model:
        model.generate([prompt(n, "the same " * 100) for n in range(200)])
        assert min(len(one.asked), len(two.asked)) > 50


def test_python_collects_garbage_as_before():
    before = gc.get_threshold()
    with serve(good) as server, generator(server) as model:
        model.generate([prompt(1)])
    assert gc.get_threshold() == before


def test_the_description_does_not_depend_on_where_the_model_runs(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with (
        generator("http://a/v1", model=str(tmp_path)) as one,
        generator("http://b/v1", model=str(tmp_path), name="y") as two,
    ):
        offline = open_generator(GeneratorConfig(model=str(tmp_path)))
        assert one.describe() == two.describe() == offline.describe()


def quotes_nothing(caught):
    """Neither the error nor what it came from quotes a trace or a key."""
    shown = "".join(traceback.format_exception(caught))
    assert SECRET not in shown
    assert KEY not in shown


STUB = labeled.shared().parent / "tools/stub_server.py"


@pytest.fixture
def stub(request, tmp_path):
    if not STUB.exists():
        pytest.skip(f"{STUB} is not there: set LEADLINE_SHARED")
    url = unused_url()
    command = [sys.executable, str(STUB), "--port", url.split(":")[-1].split("/")[0], *request.param]
    with serving(command, f"{url}/models", tmp_path / "stub.log", os.environ):
        yield url


@pytest.mark.parametrize("stub", [["--latency-ms", "20", "--error", "0.2", "--rate-limit", "0.1"]], indirect=True)
def test_a_stub_with_errors_and_rate_limits_answers_everything(stub):
    # 0.3 fail, so a prompt fails 11 times in a row with probability 2e-6.
    with generator(stub, name="stub", concurrency=64, retries=10, longest_s=0.05) as model:
        made = model.generate([prompt(n) for n in range(300)])
    assert failures(made) == [None] * 300
    for one in made:
        (reply,) = one.replies
        jsonschema.validate(json.loads(reply.text), SCHEMA)
        assert "".join(token.text for token in reply.tokens) == reply.text
        assert all(token.top[0][0] == token.text for token in reply.tokens)
        assert one.tokens_in > 0
        assert one.tokens_out > 0


@pytest.mark.parametrize(
    "stub", [["--latency-ms", "0", "--malformed", "1", "--malformed-kind", "empty"]], indirect=True
)
def test_a_stub_with_empty_replies_gives_empty_replies(stub):
    with generator(stub, name="stub") as model:
        assert texts(model.generate([prompt(n) for n in range(5)])) == [[""]] * 5


SERVER_NEEDS = (
    "vllm", "watchfiles", "prometheus_fastapi_instrumentator", "model_hosting_container_standards",
)  # fmt: skip
MISSING = [name for name in SERVER_NEEDS if importlib.util.find_spec(name) is None]


@pytest.fixture(scope="module")
def vllm(tmp_path_factory):
    from kit.models.llms import build  # noqa: PLC0415 - imports torch

    url = unused_url()
    folder = build(tmp_path_factory.mktemp("llm"), thinking=True)  # the small real model does not think
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--served-model-name", "tiny",
        "--host", "127.0.0.1", "--port", url.split(":")[-1].split("/")[0], "--dtype", "float32", "--max-model-len", "1024",
        "--enforce-eager", "--kv-cache-memory-bytes", str(1 << 28), "--reasoning-parser", "deepseek_v3",
        "--enable-prompt-tokens-details",
        "--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}',
    ]  # fmt: skip
    quiet = {"VLLM_NO_USAGE_STATS": "1", "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
    with serving(command, f"{url}/models", folder / "server.log", os.environ | quiet):
        yield url


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"vLLM's server is not installed whole, it lacks {', '.join(MISSING)}")
class TestVllm:
    """vLLM's own server, on the CPU, with a tiny model that writes anything that its grammar allows."""

    def test_replies_keep_to_the_schema_and_their_tokens_make_them(self, vllm):
        prompts = [prompt(n, "The customer canceled the order on March 14, 2024. " * 30) for n in range(12)]
        with generator(vllm, name="tiny", thinking=False, max_tokens=1024) as model:
            made = model.generate(prompts)
            again = model.generate(prompts)
        for one in made:
            (reply,) = one.replies
            assert (reply.finish, one.failure) == ("stop", None)
            jsonschema.validate(json.loads(reply.text), SCHEMA)
            assert "".join(token.text for token in reply.tokens) == reply.text
            for token in reply.tokens:
                assert 1 <= len(token.top) <= TOP
                assert all(p <= 1e-6 for _, p in token.top)
            assert one.tokens_out >= len(reply.tokens)
            assert 128 < one.tokens_in < 1024
        # The same prompts again are in the prefix cache, but for the block of 128 that the last token is in.
        assert all(max(1, one.tokens_in - 128) <= one.tokens_cached < one.tokens_in for one in again)
        assert [one.tokens_in for one in again] == [one.tokens_in for one in made]

    def test_samples_differ_and_a_seed_repeats_them(self, vllm):
        with generator(vllm, name="tiny", thinking=False, temperature=1.5, max_tokens=1024) as model:
            (made,) = model.generate([prompt(1)], samples=8)
            (again,) = model.generate([prompt(1)], samples=8)
        assert len(made.replies) == 8
        assert len({reply.text for reply in made.replies}) > 1
        assert [r.text for r in made.replies] == [r.text for r in again.replies]

    def test_a_reply_that_is_cut_off_says_so(self, vllm):
        with generator(vllm, name="tiny", thinking=False, max_tokens=1024) as model:
            (made,) = model.generate([Prompt("Judge.", "x", SCHEMA, 3)])
        assert made.replies[0].finish == "length"
        assert made.tokens_out == 3

    def test_a_thought_is_not_read_as_a_reply(self, vllm):
        # The random model thinks on until its room ends, or ends its thought by chance and answers.
        with generator(vllm, name="tiny", thinking=True, thinking_tokens=64, max_tokens=1024) as model:
            made = model.generate([prompt(n) for n in range(4)])
        for one in made:
            assert 0 < one.tokens_out <= 64
            (reply,) = one.replies
            assert reply.text == "" or reply.text.startswith("{")
            assert sum(len(token.text) for token in reply.tokens) == len(reply.text)

    def test_too_long_is_what_does_not_fit_the_server_or_the_config(self, vllm):
        long, fits = prompt(1, "apples lower cholesterol " * 600), prompt(2)
        with generator(vllm, name="tiny", thinking=False, max_tokens=1024) as model:
            assert failures(model.generate([long, fits])) == ["too_long", None]
        with generator(vllm, name="tiny", thinking=False, max_tokens=128) as model:
            assert failures(model.generate([prompt(1, "apples lower cholesterol " * 60), fits])) == ["too_long", None]

    def test_greedy_samples_are_one_reply(self, vllm):
        # vLLM refuses n > 1 at temperature 0; one reply is asked for.
        with generator(vllm, name="tiny", thinking=False, max_tokens=1024) as model:
            (made,) = model.generate([prompt(1)], samples=3)
        assert len(made.replies) == 3
        assert len(set(made.replies)) == 1

    def test_a_wrong_name_lists_the_right_one(self, vllm):
        with generator(vllm, name="huge") as model, pytest.raises(EngineError, match="it serves 'tiny'"):
            model.generate([prompt(1)])
