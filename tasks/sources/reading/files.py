"""List and read the files of a source, local or remote.

All access goes through fsspec, and every failure is a `SourceError`.
"""

import io
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, timedelta
from glob import escape, has_magic
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import fsspec
import pyarrow as pa
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from tasks.core import keys
from tasks.core.errors import ConnectionLostError, LeadlineError, SourceError, UsageError
from tasks.sources import SourceFile

FileSystem: TypeAlias = Any  # fsspec has no types

READ_AHEAD = 8 << 20  # bytes a remote file is fetched by; s3fs would take 50 MB

# Arrow's decompressors, because fsspec's zstd reader stops after the first frame and doesn't detect truncated files.
CODECS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}

_LOST = {"ConnectionError", "ClientConnectionError", "TimeoutError", "HTTPClientError"}
# Each file system behind fsspec has its own tree of exceptions; matching by name spares importing them all.
_CAUSES: tuple[tuple[set[str], str, str], ...] = (
    (
        {"FileNotFoundError"},
        "does not exist",
        "Correct `paths` in the source's config; a path with a wildcard or {date} may match nothing.",
    ),
    (
        {"PermissionError"},
        "may not be read: permission denied",
        "Give the user or the access key that runs Leadline the right to read and list it.",
    ),
    (
        {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound"},
        "needs credentials, and none were found",
        "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or run where a role is attached.",
    ),
    (
        _LOST,
        "can't be reached: the connection failed",
        "Check `endpoint_url` in storage_options and the network, then run again.",
    ),
    ({"IsADirectoryError"}, "is a directory", "Name the files in it, for example with *.jsonl."),
    ({"ImportError"}, "needs a package that is not installed", "Install the fsspec package for this kind of URL."),
)


def find(paths: list[str], base: Path, options: Mapping[str, object], start: date, end: date) -> list[SourceFile]:
    """Return the files of the paths for the days `start` to `end`, both inclusive, without duplicates, sorted by path.

    Raises:
        SourceError: A path without wildcards and `{date}` matches no file, or a location can't be listed.
    """
    days = [start + timedelta(days=n) for n in range((end - start).days + 1)]
    found: dict[str, SourceFile] = {}
    for path in sorted(paths, key=lambda p: "{date}" in p):  # if two paths match a file, a path with a day wins
        if "{date}" not in path:
            found |= _match(path, base, options, None, may_miss=has_magic(path))
            continue
        for day in days:
            found |= _match(path.replace("{date}", day.isoformat()), base, options, day, may_miss=True)
    return sorted(found.values(), key=lambda f: f.path)


def read_blocks(path: str, base: Path, options: Mapping[str, object], size: int) -> Iterator[bytes]:
    """Yield a file's bytes in blocks of at most `size`, decompressed according to its suffix.

    Args:
        path: As in `SourceFile.path`.

    Raises:
        SourceError: It can't be opened or read to its end.
    """
    with _source_errors(path):
        fs, location = _locate(path, base, options)
        raw = fs.open(location, "rb", block_size=READ_AHEAD)
    with raw:
        stream: _Guarded | pa.NativeFile = _Guarded(raw, path)
        codec = CODECS.get(Path(path).suffix)
        if codec is not None:
            stream = pa.CompressedInputStream(pa.PythonFile(_Guarded(raw, path), mode="r"), codec)
        while True:
            try:
                block = stream.read(size)
            except OSError as exc:  # from the decompressor; errors of the file itself are SourceErrors already
                raise SourceError(
                    f"{path} is damaged or was cut off ({exc}). "
                    "Nothing of it is kept; write it again, or wait until it is complete."
                ) from exc
            if not block:
                return
            yield block


@contextmanager
def seekable(path: str, base: Path, options: Mapping[str, object]) -> Iterator[pa.NativeFile]:
    """Open a file for random access. A compressed file is decompressed into memory.

    Args:
        path: As in `SourceFile.path`.

    Raises:
        SourceError: It can't be opened or read.
    """
    if Path(path).suffix in CODECS:
        yield pa.BufferReader(b"".join(read_blocks(path, base, options, READ_AHEAD)))
        return
    with _source_errors(path):
        fs, location = _locate(path, base, options)
        raw = fs.open(location, "rb", block_size=READ_AHEAD)
    with raw:
        yield pa.PythonFile(_Guarded(raw, path), mode="r")


class _Guarded(io.RawIOBase):
    """A file that raises only SourceError."""

    def __init__(self, raw: IO[bytes], path: str) -> None:
        super().__init__()
        self._raw = raw
        self._path = path

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        with _source_errors(self._path):
            return self._raw.read(size)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        with _source_errors(self._path):
            return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()


def _match(
    path: str, base: Path, options: Mapping[str, object], day: date | None, *, may_miss: bool
) -> dict[str, SourceFile]:
    """Return the files that a path matches, by full path. `day` is the value of `{date}` in the path."""
    with _source_errors(path):
        fs, location = _locate(path, base, options)
        fs.invalidate_cache()  # a process that lives for days must see today's files
        if has_magic(path):
            found = (_followed(fs, info) for info in fs.glob(location, detail=True).values())
            infos = [info for info in found if info["type"] == "file"]
        else:
            infos = _info(fs, location, may_miss=may_miss)
        if not infos:
            _check_place(fs, location, path)
        return {i["name"]: SourceFile(_display(fs, i["name"], path, base), _fingerprint(i), day) for i in infos}


def _followed(fs: FileSystem, info: dict[str, Any]) -> dict[str, Any]:
    """Return the info of a file or directory; for a local link, the info of its target.

    Raises:
        SourceError: The path is neither a file nor a directory, or its name is not UTF-8.
    """
    name = info["name"]
    if not name.isprintable() and any("\udc80" <= c <= "\udcff" for c in name):
        shown = os.fsencode(name).decode("utf-8", "backslashreplace")
        raise SourceError(f"{shown}: the name of the file is not UTF-8. Rename it, or leave it out of `paths`.")
    if isinstance(fs, LocalFileSystem) and info["type"] not in ("file", "directory"):
        state = os.stat(name)  # noqa: PTH116 - of the target; FileNotFoundError where it is gone
        if stat.S_ISDIR(state.st_mode):
            return {**info, "type": "directory"}
        if not stat.S_ISREG(state.st_mode):
            raise SourceError(f"{name} is neither a file nor a directory. Leave it out of `paths`.")
        return {**info, "type": "file", "size": state.st_size, "mtime": state.st_mtime}
    return info


def _info(fs: FileSystem, location: str, *, may_miss: bool) -> list[dict[str, Any]]:
    try:
        info = _followed(fs, fs.info(location))
    except FileNotFoundError:
        if may_miss:
            return []
        raise
    if info["type"] != "file":
        raise IsADirectoryError
    return [info]


def _check_place(fs: FileSystem, location: str, path: str) -> None:
    """Raise an error if a location can't be listed or its bucket is missing. Globbing would only find no files."""
    parts = list(takewhile(lambda part: not has_magic(part), location.split("/")[:-1]))
    try:
        fs.ls("/".join(parts) or "/", detail=False)
    except FileNotFoundError:
        if "s3" not in fs.protocol:
            return
        try:
            fs.info(parts[0])
        except FileNotFoundError:
            remedy = "Correct `paths` in the source's config, or create the bucket."
            raise SourceError(f"{path}: there is no bucket {parts[0]!r}. {remedy}") from None
        except PermissionError:  # a key that may list one prefix may not ask for the whole bucket
            return


def _locate(path: str, base: Path, options: Mapping[str, object]) -> tuple[Any, str]:
    """File system and location on it."""
    if "://" in path:
        if "@" in path.partition("://")[2].partition("/")[0]:
            raise UsageError(
                "A path of the source holds a name or a password before its host. Remove them: configs are under "
                "version control. Credentials come from the environment, as docs/trace-format.md explains."
            )
        fs, location = url_to_fs(path, **options)
        return fs, str(location)
    root = str(base.absolute())
    return fsspec.filesystem("file"), os.path.normpath(Path(escape(root) if has_magic(path) else root) / path)


def _display(fs: FileSystem, name: str, path: str, base: Path) -> str:
    if "://" in path:
        return str(fs.unstrip_protocol(name))
    return name if Path(path).is_absolute() else Path(os.path.relpath(name, base.absolute())).as_posix()


def _fingerprint(info: Mapping[str, Any]) -> str:
    """Hash of size and ETag; of size and modification time where there is no ETag."""
    state = next((info[k] for k in ("ETag", "etag", "mtime", "LastModified", "last_modified") if info.get(k)), None)
    return keys.version({"size": info["size"], "state": str(state)})


@contextmanager
def _source_errors(path: str) -> Iterator[None]:
    """Turn whatever a file system raises into a SourceError about `path`."""
    try:
        yield
    except LeadlineError:
        raise
    except Exception as exc:
        names = {cls.__name__ for cls in type(exc).__mro__}
        for causes, problem, remedy in _CAUSES:
            if names & causes:
                raise (ConnectionLostError if causes is _LOST else SourceError)(f"{path} {problem}. {remedy}") from exc
        text = " ".join(str(exc).split())[:200]
        raise SourceError(f"{path} could not be read ({type(exc).__name__}: {text}). Check it and run again.") from exc
