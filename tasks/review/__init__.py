"""Review: what people are asked to label, and their labels on the way into the lake."""
