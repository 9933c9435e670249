"""The page of a night: numbers, what to know first, trust in its judge, and where traces stop."""
