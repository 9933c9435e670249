"""Review: export claims for people to label, and import their labels."""
