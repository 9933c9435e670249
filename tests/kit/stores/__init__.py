"""Stores of traces for tests: a stand-in server, and what each kind of store says."""
