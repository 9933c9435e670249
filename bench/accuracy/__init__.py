"""How far judges, extractors, patterns and scores agree with people."""
