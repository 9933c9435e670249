"""Words, numbers, sentences, windows and languages of texts. Independent of store and config."""
