"""Unit tests for judges: suites of cases, pass rates, and requirements for promotion."""
