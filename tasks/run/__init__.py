"""What a run is: its context, how that is built from the config, which traces it covers, and its record."""
