"""One contract for all storages: a folder, memory, and servers of S3 and of Azure on loopback."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from tasks.core.errors import ChangedError
from tasks.core.paths import ObjectUrl
from tasks.store.remote.objects import Objects, objects
from tasks.store.storage import Local, Storage, storage

KINDS = ["local", "memory", "bucket", "container"]


@pytest.fixture(params=KINDS)
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Storage]:
    """Makes a storage of the same place, as another process has one."""
    if request.param == "local":
        return lambda: Local(tmp_path / "lake")
    if request.param == "memory":
        store = MemoryStore()
        return lambda: Objects(ObjectUrl("memory://lake", tmp_path / "cache"), store)
    place = request.getfixturevalue(request.param)
    return lambda: objects.__wrapped__(place)


@pytest.fixture
def held(another: Callable[[], Storage]) -> Storage:
    return another()


def content(held: Storage, key: str) -> bytes:
    return held.read(key)[0]


class TestVerbs:
    def test_what_was_put_is_read_and_a_second_put_replaces_it(self, held: Storage) -> None:
        held.put("t/a", b"one")
        first = held.stamp("t/a")
        assert first is not None
        assert (content(held, "t/a"), first.size) == (b"one", 3)
        put = held.put("t/a", memoryview(b"three"))
        second = held.stamp("t/a")
        assert second is not None
        assert (content(held, "t/a"), second.size) == (b"three", 5)
        assert first.etag != second.etag == put.etag == held.read("t/a")[1].etag

    def test_what_is_not_there(self, held: Storage) -> None:
        assert held.stamp("t/a") is None
        assert held.stamp(".note") is None
        assert list(held.keys("t", 0)) == list(held.keys("t", 2)) == []
        for ask in (held.read, held.written, lambda key: held.file(key).read_bytes()):
            with pytest.raises(FileNotFoundError):
                ask("t/a")
        held.delete("t/a")

    def test_what_was_deleted_is_gone(self, held: Storage) -> None:
        held.put("t/a", b"x")
        held.delete("t/a")
        assert held.stamp("t/a") is None
        assert list(held.keys("t", 0)) == []

    def test_keys_of_a_depth_without_hidden_ones_and_of_some_days(self, held: Storage) -> None:
        days = [f"date=2026-11-{n:02}" for n in (1, 2, 30)]
        for version in ("v=a", "v=b"):
            for day in days:
                held.put(f"t/{version}/{day}/p.parquet", b"x")
        for other in ("t/v=a/q.parquet", "t/v=a/date=2026-11-01/.r.tmp", "tt/v=a/date=2026-11-01/p.parquet", ".note"):
            held.put(other, b"x")
        assert sorted(held.keys("t", 2)) == [f"t/{v}/{d}/p.parquet" for v in ("v=a", "v=b") for d in days]
        assert sorted(held.keys("t/v=b", 1)) == [f"t/v=b/{d}/p.parquet" for d in days]
        assert list(held.keys("t/v=b/date=2026-11-02", 0)) == ["t/v=b/date=2026-11-02/p.parquet"]
        for folder, depth, versions in (("t", 2, ["v=a", "v=b"]), ("t/v=b", 1, ["v=b"])):
            found = held.keys(folder, depth, ("2026-11-02", "2026-11-30"))
            assert sorted(found) == [f"t/{v}/{d}/p.parquet" for v in versions for d in days[1:]]

    def test_create_replaces_nothing(self, held: Storage) -> None:
        assert held.create(".salt", b"first")
        assert not held.create(".salt", b"second")
        assert content(held, ".salt") == b"first"
        held.delete(".salt")
        assert held.create(".salt", b"third")

    def test_a_version_is_replaced_by_whoever_names_it(self, held: Storage, another: Callable[[], Storage]) -> None:
        zeroth = held.put("t/a", b"zero")
        listed = another().stamp("t/a")
        assert listed is not None
        assert listed.etag == zeroth.etag
        first = held.put("t/a", b"one", expected=listed.etag)
        second = held.put("t/a", b"two", expected=first.etag)
        for key, etag in (("t/a", first.etag), ("t/none", second.etag)):
            with pytest.raises(ChangedError, match=f"{key}: another process has replaced it") as caught:
                held.put(key, b"three", expected=etag)
            assert caught.value.transient
        assert content(held, "t/a") == b"two"
        assert held.stamp("t/none") is None

    def test_a_file_may_count_as_written_earlier(self, held: Storage) -> None:
        at = 1_700_000_000_123_456_789
        held.put("t/a", b"x", written_ns=at)
        assert held.written("t/a") == held.read("t/a")[1].written_ns == at
        held.put("t/a", b"y")
        assert held.written("t/a") > at

    def test_a_file_of_this_machine_has_the_content(self, held: Storage) -> None:
        held.put("t/v=a/p.parquet", b"one")
        assert held.file("t/v=a/p.parquet").read_bytes() == b"one"
        held.put("t/v=a/p.parquet", b"two")
        assert held.file("t/v=a/p.parquet").read_bytes() == b"two"
        assert held.file("t/v=a/p.parquet", again=True).read_bytes() == b"two"

    def test_a_file_is_moved_here(self, held: Storage, tmp_path: Path) -> None:
        staged = tmp_path / "staged"
        staged.write_bytes(b"x")
        held.take("t/a", staged)
        assert (content(held, "t/a"), staged.exists()) == (b"x", False)


class TestRaces:
    def test_of_several_that_create_a_file_one_does(self, another: Callable[[], Storage]) -> None:
        with ThreadPoolExecutor(6) as pool:
            for n in range(15):
                ready = threading.Barrier(6)

                def create(i: int, held: Storage, key: str = f".lock-{n}", ready: threading.Barrier = ready) -> bool:
                    ready.wait()
                    return held.create(key, str(i).encode())

                won = list(pool.map(create, range(6), [another() for _ in range(6)]))
                assert won.count(True) == 1
                assert content(another(), f".lock-{n}") == str(won.index(True)).encode()

    def test_no_replacement_is_lost(self, another: Callable[[], Storage]) -> None:
        """Each adds one to a number, five times, and begins again where another was faster."""
        another().put("t/n", b"0")

        def add(held: Storage) -> None:
            for _ in range(5):
                while True:
                    data, stamp = held.read("t/n")
                    # Two that write the same number write the same bytes: each adds a mark of its own.
                    fresh = str(int(data.split()[0]) + 1).encode() + b" " + os.urandom(4).hex().encode()
                    try:
                        held.put("t/n", fresh, expected=stamp.etag)
                        break
                    except ChangedError:
                        continue

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add, [another() for _ in range(4)]))
        assert content(another(), "t/n").split()[0] == b"20"

    @pytest.mark.parametrize("kind", ["local", "bucket", "container"])
    def test_of_several_processes_one_creates_a_file(
        self, kind: str, request: pytest.FixtureRequest, tmp_path: Path
    ) -> None:
        place = tmp_path / "lake" if kind == "local" else request.getfixturevalue(kind)
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            done = [pool.submit(creates, storage(place), i) for i in range(2)]
            won = [names for future in done for names in future.result()]
        assert sorted(won) == sorted(f".lock-{n}" for n in range(30))


def creates(held: Storage, i: int) -> list[str]:
    """The names of thirty files that this process was the first to create."""
    return [key for key in (f".lock-{n}" for n in range(30)) if held.create(key, str(i).encode())]


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_files_of_a_folder_and_copies_on_this_machine_are_private_where_the_process_is(
    tmp_path: Path, umask: None
) -> None:
    local = Local(tmp_path / "lake")
    remote = Objects(ObjectUrl("memory://lake", tmp_path / "cache"), MemoryStore())
    for held in (local, remote):
        held.put("t/p.parquet", b"x")
        file = held.file("t/p.parquet")
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
