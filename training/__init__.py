"""Trains the embedded entailment model: data preparation, training, evaluation, fusion and export, one command each.

    python -m training prepare | train | evaluate | fuse | export

Everything a run needs is in one recipe file (`training/recipes/`). `python -m training distill` teaches a small
language model what a strong judge has judged. Nothing here is imported by Leadline itself.
"""
