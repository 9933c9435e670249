"""Privacy: texts leave the lake; numbers stay."""
