"""Models in vLLM's own processes: on GPUs, and on CPUs with a vLLM built for them."""
