"""Text: windows of sentences and languages. Knows no store and no config."""
