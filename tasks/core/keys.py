"""Content keys: every id that Leadline makes is a hash of what it stands for.

Keys decide what is already paid for, so they are stable across processes, machines and versions of Leadline.
Parts are length-prefixed: ("ab", "c") and ("a", "bc") never collide.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

KEY_HEX = 32  # 128 bits
SHORT_HEX = 16  # 64 bits, for versions that people read and type


def key(*parts: str | bytes | int, size: int = KEY_HEX) -> str:
    """Hash of the parts in order, as `size` lower-case hexadecimal characters (BLAKE2b)."""
    digest = hashlib.blake2b(digest_size=size // 2)
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: hashlib.blake2b, part: str | bytes | int) -> None:
    data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)


def version(value: Mapping[str, object] | Sequence[object]) -> str:
    """Short hash of a JSON-like value; the order of mapping keys does not matter."""
    return key(msgspec.json.encode(value, order="sorted"), size=SHORT_HEX)


class Versioned:
    """What goes by a hash of its own description."""

    def describe(self) -> dict[str, object]:
        """Everything that can change a result."""
        raise NotImplementedError

    @cached_property
    def version(self) -> str:
        """Hash of `describe()`.

        Raises:
            EngineError: A model's files are not there.
        """
        return version(self.describe())


def request_keys(passages: Sequence[str], hypotheses: Iterable[str]) -> Iterator[str]:
    """Key of each judgment of the same passages: a hash of exactly what the judge sees.

    The same as `key(*passages, hypothesis)`, but the passages are read once.
    """
    shared = hashlib.blake2b(digest_size=KEY_HEX // 2)
    for passage in passages:
        _feed(shared, passage)
    for hypothesis in hypotheses:
        digest = shared.copy()
        _feed(digest, hypothesis)
        yield digest.hexdigest()


def request_key(premise: str, hypothesis: str) -> str:
    """Key of one judgment of one passage."""
    return key(premise, hypothesis)


def claim_id(trace_id: str, extractor_version: str, ordinal: int) -> str:
    """Id of one claim of one trace, as one extractor version cuts it."""
    return key(trace_id, extractor_version, ordinal)
