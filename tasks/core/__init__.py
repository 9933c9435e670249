"""Types, schemas, keys, configuration and errors. Imports nothing else of Leadline's."""
