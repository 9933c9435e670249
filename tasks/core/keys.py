"""Content keys: every id that Leadline creates is a hash of the content that it identifies.

Keys decide which results can be reused, so they are stable across processes, machines and versions of Leadline.
The inputs are hashed with a length prefix, so that ("ab", "c") and ("a", "bc") get different keys.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

KEY_HEX = 32  # 128 bits
SHORT_HEX = 16  # 64 bits, for versions that people read and type


def key(*parts: str | bytes | int, size: int = KEY_HEX) -> str:
    """Return the BLAKE2b hash of the parts in order, as `size` lowercase hexadecimal characters."""
    digest = hashlib.blake2b(digest_size=size // 2)
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: hashlib.blake2b, part: str | bytes | int) -> None:
    data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)


def version(value: Mapping[str, object] | Sequence[object]) -> str:
    """Return a short hash of a JSON-like value. The order of mapping keys does not matter."""
    return key(msgspec.json.encode(value, order="sorted"), size=SHORT_HEX)


class Versioned:
    """Base class of objects whose version is a hash of their description."""

    def describe(self) -> dict[str, object]:
        """Everything that can change a result."""
        raise NotImplementedError

    @cached_property
    def version(self) -> str:
        """Hash of `describe()`.

        Raises:
            EngineError: A model's files are missing.
        """
        return version(self.describe())


def request_keys(passages: Sequence[str], hypotheses: Iterable[str]) -> Iterator[str]:
    """Yield the key of each judgment of the same passages: a hash of exactly what the judge reads.

    Equals `key(*passages, hypothesis)`, but hashes the passages only once.
    """
    shared = hashlib.blake2b(digest_size=KEY_HEX // 2)
    for passage in passages:
        _feed(shared, passage)
    for hypothesis in hypotheses:
        digest = shared.copy()
        _feed(digest, hypothesis)
        yield digest.hexdigest()


def request_key(premise: str, hypothesis: str) -> str:
    """Return the key of a judgment with a single passage."""
    return key(premise, hypothesis)


def claim_id(trace_id: str, extractor_version: str, ordinal: int) -> str:
    """Return the id of a claim: the claim of a trace at a position, by extractor version."""
    return key(trace_id, extractor_version, ordinal)
