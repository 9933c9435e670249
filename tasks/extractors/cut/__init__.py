"""An answer cut into sentences, each with its kind, what it cites and what it is read with; no model is needed."""
