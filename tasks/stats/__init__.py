"""Statistics over plain arrays: intervals, agreement, comparison, calibration, alerting. Uses no store or config."""
