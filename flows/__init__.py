"""Flows: the `leadline` command, one verb per flow."""
