"""Task shells: the lake into the warehouse, the nights into the report, the warehouse to its readers."""

from tasks.shell import shell
from tasks.stages import publish

load_warehouse = shell("warehouse", publish.load_warehouse)
write_reports = shell("report", publish.write_reports)
publish_warehouse = shell("publish", publish.publish_warehouse)
