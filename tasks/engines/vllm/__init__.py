"""Models that vLLM runs in processes of its own: on GPUs, and on CPUs where vLLM is built for them."""
