"""Verbs on judges: their versions, a check of one, a backfill with another, training data for a smaller one."""
