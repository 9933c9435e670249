"""The engine that recalls recorded replies and logs what it was asked."""

import multiprocessing

import msgspec
import pytest

from tasks.core.errors import EngineError
from tasks.engines.replay import Replay


class Reply(msgspec.Struct):
    key: str
    text: str


def test_recalls_by_key_and_the_last_line_counts(tmp_path):
    file = tmp_path / "replies.jsonl"
    file.write_text('{"key": "a", "text": "old"}\n\n{"key": "b", "text": "B"}\n{"key": "a", "text": "new"}\n')
    found = Replay(Reply, file).ask(["b", "c", "a"])
    assert [reply and reply.text for reply in found] == ["B", None, "new"]


def test_without_records_nothing_is_recalled():
    replay = Replay(Reply)
    assert replay.ask(["a"]) == [None]
    assert replay.version is None


def test_version_is_the_records_bytes(tmp_path):
    for name, text in (("x", "1"), ("y", "1"), ("z", "2")):
        (tmp_path / name).write_text(f'{{"key": "a", "text": "{text}"}}\n')
    x, y, z = (Replay(Reply, tmp_path / name).version for name in "xyz")
    assert x == y != z


def test_logs_every_key_asked_and_appends(tmp_path):
    log = tmp_path / "asked"
    Replay(Reply, log=log).ask(key for key in ["a", "b"])
    Replay(Reply, log=log).ask(["a"])
    Replay(Reply, log=log).ask([])
    assert log.read_text() == "a\nb\na\n"


def _ask_many(log, name):
    replay = Replay(Reply, log=log)
    for i in range(200):
        replay.ask([f"{name}{i:04}"] * 3)


def test_lines_of_several_processes_do_not_mix(tmp_path):
    log = tmp_path / "asked"
    spawn = multiprocessing.get_context("fork")
    running = [spawn.Process(target=_ask_many, args=(log, name)) for name in "pq"]
    for process in running:
        process.start()
    for process in running:
        process.join()
    lines = log.read_text().splitlines()
    assert sorted(lines) == sorted(f"{name}{i:04}" for name in "pq" for i in range(200) for _ in range(3))


def test_bad_line_names_file_and_line_but_not_its_text(tmp_path):
    file = tmp_path / "replies.jsonl"
    file.write_text('{"key": "a", "text": "fine"}\n{"key": "b", "text": 3, "note": "private words"}\n')
    with pytest.raises(EngineError, match=r"replies\.jsonl: line 2 .*Reply as JSON") as caught:
        Replay(Reply, file)
    assert "private words" not in str(caught.value)


def test_missing_records_and_unwritable_log_are_engine_errors(tmp_path):
    with pytest.raises(EngineError, match="can't be read"):
        Replay(Reply, tmp_path / "none.jsonl")
    with pytest.raises(EngineError, match="can't be written"):
        Replay(Reply, log=tmp_path / "no" / "folder").ask(["a"])
