"""Agreement between judges, graders and people."""
