"""Verbs on judges: versions, check, backfill, and distillation."""
