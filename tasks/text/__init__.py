"""Words, numbers, sentences, windows and languages of texts. Knows no store and no config."""
