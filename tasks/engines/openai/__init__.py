"""Language models on servers that speak OpenAI's chat completions."""
