"""Statistics over plain arrays: intervals, agreement, comparison, calibration, alerting. Knows no store and no config."""
