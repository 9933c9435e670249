"""Gates: which rows are refused, which nights are unusual, and whether results may be kept."""
