"""How many GPUs a model is held on, for the accounts of a run."""


def held(wanted: int) -> int:
    """GPUs of a model that vLLM cuts across `wanted` of them; none where this machine has no GPU."""
    import torch  # noqa: PLC0415 - nobody should wait for it who only reads a config

    return wanted if torch.cuda.is_available() else 0
