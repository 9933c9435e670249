"""Results of analyses as documents, for the terminal and for HTML pages."""
