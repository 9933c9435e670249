"""Comparisons of two judges, recipes, generators, prompt versions or date ranges: baseline and candidate."""
