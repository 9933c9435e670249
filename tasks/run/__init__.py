"""The parts of a run: its context, the code that builds the context from the config, scopes, and the run record."""
