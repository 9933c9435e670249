"""Ingest: source files into `traces`, refused rows into `quarantine`, one ledger row per file."""
