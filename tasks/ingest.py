"""Task shell: source files into `traces`."""

from tasks.shell import shell
from tasks.stages import ingest as stage

ingest = shell("ingest", stage.ingest)
