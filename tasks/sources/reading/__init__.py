"""What the kinds of sources read with: files, exports and servers; and what they hand out: rows and rejects."""
