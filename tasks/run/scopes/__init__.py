"""Which judge counts for which traces and days: promotions, scopes, and the variants of a run."""
