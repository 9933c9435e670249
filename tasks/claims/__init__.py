"""Claims: answers cut into claims."""
