"""How far judges, graders and people agree."""
