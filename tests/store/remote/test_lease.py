"""Leases: one of several has it, it ends by itself, and whoever lost it writes nothing more."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from obstore.store import MemoryStore

from tasks.core.errors import BusyError, ChangedError, StorageError, UsageError
from tasks.core.paths import ObjectUrl
from tasks.core.schemas import JUDGES
from tasks.store.lake import Lake, from_rows
from tasks.store.remote.lease import Held, Lease
from tasks.store.remote.objects import Objects, objects
from tasks.store.storage import Data

KEY = ".lock"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def held(store: MemoryStore, tmp_path: Path) -> Objects:
    return Objects(ObjectUrl("memory://lake", tmp_path), store)


@pytest.fixture
def other(store: MemoryStore, tmp_path: Path) -> Objects:
    """The same place, for another process."""
    return Objects(ObjectUrl("memory://lake", tmp_path), store)


def lease_of(held: Objects) -> Held:
    return msgspec.json.decode(held.read(KEY)[0], type=Held)


def left(seconds: float, expires: datetime) -> bytes:
    """What a run that was killed has left, written now."""
    begun = datetime(2026, 11, 1, tzinfo=UTC)
    return msgspec.json.encode(Held("leadline nightly", "gpu-1", 4711, "abc", begun, expires, seconds))


class TestTaking:
    def test_the_other_is_reported_who_has_it_and_until_when(self, held: Objects, other: Objects) -> None:
        with Lease(held, KEY, "leadline nightly, process 7"):
            mine = lease_of(held)
            assert (mine.holder, mine.seconds) == ("leadline nightly, process 7", 150)
            assert mine.expires - mine.started < timedelta(seconds=160)
            with pytest.raises(BusyError) as caught:
                Lease(other, KEY, "another").__enter__()
        message = str(caught.value)
        assert message.startswith(
            f"memory://lake: locked by leadline nightly, process 7 on {mine.host} (lease {mine.run})"
        )
        assert f"The lease ends at {mine.expires:%H:%M:%S} UTC unless it is renewed. Wait until it ends" in message
        assert caught.value.exit_code == 4

    def test_once_given_back_it_is_free_for_all(self, held: Objects, other: Objects) -> None:
        for taker in (held, other, held, held, other):
            with pytest.raises(ValueError, match="inside"), Lease(taker, KEY, "me"):
                raise ValueError("inside")
        assert lease_of(held).seconds == 0

    def test_one_that_was_not_renewed_in_time_is_taken_over(self, held: Objects) -> None:
        held.put(KEY, left(0.000_001, datetime(2026, 11, 1, tzinfo=UTC)))
        with Lease(held, KEY, "me"):
            assert lease_of(held).holder == "me"

    @pytest.mark.parametrize("hours", [-1, 1])
    def test_a_clock_that_is_an_hour_off_neither_frees_a_lease_nor_keeps_it(self, held: Objects, hours: int) -> None:
        """Each writes when it expires by its own clock; what counts is the age of the file by the store's."""
        wrong = datetime.now(UTC) + timedelta(hours=hours)
        held.put(KEY, left(60, wrong))
        with pytest.raises(BusyError, match="locked by leadline nightly on gpu-1"):
            Lease(held, KEY, "me").__enter__()
        held.put(KEY, left(0.000_001, wrong))
        with Lease(held, KEY, "me"):
            pass

    def test_whoever_waits_gets_it_next(self, held: Objects, other: Objects) -> None:
        got = threading.Event()

        def wait() -> None:
            with Lease(other, KEY, "waits", wait=True):
                got.set()

        with Lease(held, KEY, "me"):
            waiting = threading.Thread(target=wait)
            waiting.start()
            assert not got.is_set()
        waiting.join()
        assert got.is_set()

    def test_a_file_that_is_no_lease(self, held: Objects) -> None:
        held.put(KEY, b"mine")
        with pytest.raises(
            UsageError, match=r"\.lock: this file is not a lease of Leadline\. Remove it if no run works"
        ):
            Lease(held, KEY, "me").__enter__()

    def test_a_store_that_does_not_look_before_it_creates(self, store: MemoryStore, tmp_path: Path) -> None:
        class Careless(Objects):
            def create(self, key: str, data: Data) -> bool:
                self.put(key, data)
                return True

        careless = Careless(ObjectUrl("memory://lake", tmp_path), store)
        with pytest.raises(
            UsageError, match=r"this store ignores If-None-Match and .*, so two runs could work on the lake"
        ):
            Lease(careless, KEY, "me").__enter__()

    def test_an_answer_that_was_lost(self, store: MemoryStore, tmp_path: Path) -> None:
        """The library asks again after a broken connection, and is refused because of its own first try."""

        class Deaf(Objects):
            def create(self, key: str, data: Data) -> bool:
                super().create(key, data)
                return False

        with Lease(Deaf(ObjectUrl("memory://lake", tmp_path), store), KEY, "me") as lease:
            assert lease.renew()


class TestHolding:
    def test_a_renewed_lease_is_held_on(self, held: Objects, other: Objects) -> None:
        now = [0.0]
        with Lease(held, KEY, "me", clock=lambda: now[0]) as lease:
            for second in (40, 90, 140):
                now[0] = second
                assert lease.renew()
                held.put("t/a", b"x")
            with pytest.raises(BusyError):
                Lease(other, KEY, "another").__enter__()

    def test_whoever_could_not_renew_it_in_time_writes_nothing_more(self, held: Objects) -> None:
        """As after a machine slept, or lost its network. A write may take 90 s of the 150 that a lease lasts."""
        now = [0.0]
        with Lease(held, KEY, "me", clock=lambda: now[0]):
            held.put("t/a", b"x")
            now[0] = 61
            for write in (lambda: held.put("t/a", b"y"), lambda: held.create("t/b", b"y"), lambda: held.delete("t/a")):
                with pytest.raises(
                    BusyError, match="could not be renewed in time, so another run may work on this lake"
                ):
                    write()
        assert held.read("t/a")[0] == b"x"
        held.put("t/a", b"y")

    def test_whoever_lost_it_to_another_writes_nothing_more_and_leaves_it_alone(
        self, held: Objects, other: Objects
    ) -> None:
        with Lease(held, KEY, "me") as lease:
            other.put(KEY, left(60, datetime.now(UTC)))
            assert not lease.renew()
            with pytest.raises(BusyError, match="leadline nightly on gpu-1 has taken over the lease, so another run"):
                held.put("t/a", b"x")
        assert lease_of(other).run == "abc"

    def test_a_store_that_does_not_answer_for_a_while(self, store: MemoryStore, tmp_path: Path) -> None:
        class Failing(Objects):
            fails = "nothing"

            def put(self, key: str, data: Data, **options: object) -> object:  # type: ignore[override]
                done = None if self.fails == "before" else super().put(key, data, **options)  # type: ignore[arg-type]
                if self.fails != "nothing":
                    raise StorageError("no answer")
                return done

        failing, now = Failing(ObjectUrl("memory://lake", tmp_path), store), [0.0]
        with Lease(failing, KEY, "me", clock=lambda: now[0]) as lease:
            for failing.fails in ("before", "after"):
                assert lease.renew()
            failing.fails = "nothing"
            assert lease.renew()  # the try that was heard is its own
            assert lease.renew()
            failing.fails, now[0] = "before", 61
            assert not lease.renew()


def race(places: list[Objects], rounds: int) -> list[list[str]]:
    """Who got the lease in each round."""
    won = []
    with ThreadPoolExecutor(len(places)) as pool:
        for n in range(rounds):
            ready, tried = threading.Barrier(len(places)), threading.Barrier(len(places))

            def drive(
                i: int, ready: threading.Barrier = ready, tried: threading.Barrier = tried, key: str = f".lock-{n % 2}"
            ) -> str:
                ready.wait()
                try:
                    with Lease(places[i], key, f"driver {i}"):
                        tried.wait()
                        return f"driver {i}"
                except BusyError:
                    tried.wait()
                    return ""

            won.append([name for name in pool.map(drive, range(len(places))) if name])
    return won


def test_of_two_drivers_one_gets_the_lease(place: ObjectUrl) -> None:
    """In the first rounds the lease is created; later, one that was given back is taken over."""
    found = race([objects.__wrapped__(place) for _ in range(2)], 12)
    assert [len(names) for names in found] == [1] * 12


def test_a_lake_on_object_storage_is_locked_by_leases(place: ObjectUrl) -> None:
    lake, rows = Lake(place), from_rows([{"judge_version": "j", "name": "n", "kind": "k", "definition": "{}"}], JUDGES)
    elsewhere = objects.__wrapped__(place)
    with lake.lock("me"), Lake(place, writer="backfill").lock("beside it"):
        with pytest.raises(BusyError, match="locked by me on"):
            Lake(place).lock("another").__enter__()
        assert lake.find(JUDGES, "j") is None
        other = Lake(place)
        other.storage = other._top = elsewhere
        other.write(JUDGES, "j", rows)
        with pytest.raises(ChangedError):
            lake.write(JUDGES, "j", rows, once=True)
        assert lake.find(JUDGES, "j")  # what another process has written is seen after it was in the way
    with lake.lock("another"):
        pass
