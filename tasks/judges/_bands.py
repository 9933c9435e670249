"""Which thresholds make sense together, for every judge that reads a label off `p_supported`."""


def check(supported: float, partially_supported: float | None, abstain: tuple[float, float] | None) -> None:
    """Refuses bands that contradict each other.

    Raises:
        ValueError: What is wrong, and what to do.
    """
    if partially_supported is not None and partially_supported > supported:
        raise ValueError("has thresholds.partially_supported above thresholds.supported; lower it")
    if abstain is not None and abstain[0] > abstain[1]:
        raise ValueError("has an abstain band [lo, hi] with lo above hi; swap them")
