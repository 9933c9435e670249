"""An S3 server for tests: `python s3_server.py PORT`. As in S3, each request is whole before the next one begins."""

import sys
from collections.abc import Iterable
from threading import Lock
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

ONE = Lock()  # moto looks and writes in two steps, so that two could create one object
MOTO = DomainDispatcherApplication(create_backend_app)


def app(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
    with ONE:
        return list(MOTO(environ, start))


if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), app, threaded=True)
