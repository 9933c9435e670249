"""Models that come with Leadline."""
