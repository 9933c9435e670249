"""Two judges, recipes, generators or date ranges compared: baseline and candidate."""
