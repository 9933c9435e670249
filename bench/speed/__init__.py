"""What a night costs: seconds, memory, requests and tokens."""
