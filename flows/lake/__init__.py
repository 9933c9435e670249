"""Verbs on the lake as a whole: backup, checks, the warehouse, SQL, and the removal of texts."""
