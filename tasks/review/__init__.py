"""Review: claims for people to label, and the import of their labels."""
