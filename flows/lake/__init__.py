"""Verbs on the whole lake: backup, checks, the warehouse, SQL, and removal of texts."""
