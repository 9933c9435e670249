"""Results of analyses as documents, which the terminal and a page show alike."""
