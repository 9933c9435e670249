"""Claims: cutting answers into claims."""
