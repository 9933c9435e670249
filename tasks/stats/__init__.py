"""Statistics over plain arrays: intervals, agreement, comparison, calibration, alerting. No store, no config."""
