"""`leadline review`: people's labels in, claims to label out, and how far people agree."""
