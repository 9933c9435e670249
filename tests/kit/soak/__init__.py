"""A soak: campaigns against a finished lake, for as long as is wanted."""
