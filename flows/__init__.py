"""Flows: the `leadline` command, with one verb (subcommand) per flow."""
