"""Privacy: redacts texts in the lake and keeps the numbers."""
