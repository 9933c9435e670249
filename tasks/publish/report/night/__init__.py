"""The night page: its numbers, opening lines, trust in the judge, and the waterfall."""
