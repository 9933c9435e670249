"""`leadline rebuild`: the warehouse again, from nothing but the lake."""

import os
from pathlib import Path

from rich.console import Console

from tasks.core.config import load_nightly
from tasks.publish.publish import rebuild
from tasks.store.lake import Lake
from tasks.store.warehouse import Warehouse


def run(config: Path) -> None:
    """Rebuild and publish.

    Raises:
        BusyError: A run holds the lake.
    """
    settings = load_nightly(config)
    lake = Lake(settings.lake)
    with lake.lock(f"leadline rebuild, process {os.getpid()}"):
        loaded = rebuild(lake, Warehouse(lake, settings.warehouse, settings.limits.memory_limit))
    Console().print(f"{settings.warehouse}: {loaded} partitions loaded.")
