"""A knowledge base cut into articles that stand alone, so that citations can be measured per source."""
