"""`leadline review`: export claims to label, import people's labels, and measure agreement."""
