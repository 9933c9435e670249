"""Ties a process to the one that needs it: when that one is gone, however it ended, so is this one.

vLLM loads a model in processes of its own, which outlive a parent that is killed and keep its GPU full, so that the run
which is to resume finds no room; vLLM imports `Leash` there, before it loads a model. Prefect's temporary server would
run forever. Importing this module ends the process as soon as the one named in `LEADLINE_OWNER` is gone, and does
nothing where none is named.
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
