"""Task shell: changes of the watched numbers."""

from tasks.shell import shell
from tasks.stages import alerts

find_alerts = shell(alerts.STAGE, alerts.find_alerts)
