"""Leadline's building blocks: Prefect task shells over pure stages, and the layers they stand on."""
