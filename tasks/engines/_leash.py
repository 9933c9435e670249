"""Ties a process of vLLM's to the process that started the engine: killed, that one leaves no model in memory behind.

vLLM loads a model in processes of its own, which outlive a parent that is killed and keep its GPU full, so that the
run which is to resume finds no room. vLLM imports `Leash` there, before it loads a model; importing this module
ends the process as soon as the one named in `LEADLINE_ENGINE_OWNER` is gone, and does nothing where none is named.
"""

import os
import select
import threading

OWNER = "LEADLINE_ENGINE_OWNER"


class Leash:
    """What vLLM's `worker_extension_cls` names. Adds no methods."""


def _follow(owner: int) -> None:
    try:
        handle = os.pidfd_open(owner)
    except ProcessLookupError:
        os._exit(1)
    gone = select.poll()
    gone.register(handle, select.POLLIN)
    gone.poll()
    os._exit(1)


if OWNER in os.environ and int(os.environ[OWNER]) != os.getpid():
    threading.Thread(target=_follow, args=(int(os.environ[OWNER]),), name="leash", daemon=True).start()
