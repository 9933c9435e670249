"""Ends this process when its owner process ends, for whatever reason.

vLLM loads a model in separate processes. If their parent is killed, they keep running and fill the GPU, so the next run
has no room for its model. vLLM therefore imports `Leash` in these processes before it loads a model. Prefect's
temporary server would also run forever. Importing this module starts a thread that ends the process once the
process with the id in `LEADLINE_OWNER` is gone. Without that variable, the import does nothing.
"""

import os
import select
import sys
import threading
import time

OWNER = "LEADLINE_OWNER"
LOOKS_EVERY_S = 0.5


class Leash:
    """What vLLM's `worker_extension_cls` names. Adds no methods."""


def _follow(owner: int) -> None:
    try:
        _wait(owner)
    finally:
        os._exit(1)


def _wait(owner: int) -> None:
    """Return once the process is gone."""
    if sys.platform == "linux":
        try:
            handle = os.pidfd_open(owner)
        except ProcessLookupError:
            return
        gone = select.poll()
        gone.register(handle, select.POLLIN)
        gone.poll()
    else:
        while os.getppid() == owner:
            time.sleep(LOOKS_EVERY_S)


if OWNER in os.environ and int(os.environ[OWNER]) != os.getpid():
    threading.Thread(target=_follow, args=(int(os.environ[OWNER]),), name="leash", daemon=True).start()
