"""What several engines need: a model's files, token ids, batches, processes and requests."""
