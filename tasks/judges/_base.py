"""Code that all judges share: the languages they read, and the label for a probability of support."""

from tasks.core.config import Language, Settings, Share
from tasks.core.types import Label


class JudgeConfig(Settings):
    """Keys of every judge's file.

    Attributes:
        languages: ISO 639 codes of the languages that the judge reads. The recipe abstains on claims in other
            languages. None reads all languages.
    """

    languages: tuple[Language, ...] | None = None


def check_bands(supported: float, partially_supported: float | None, abstain: tuple[float, float] | None) -> None:
    """Refuse contradictory thresholds.

    Raises:
        ValueError: The thresholds contradict each other. The message says how to correct them.
    """
    if partially_supported is not None and partially_supported > supported:
        raise ValueError("has thresholds.partially_supported above thresholds.supported; lower it")
    if abstain is not None and abstain[0] > abstain[1]:
        raise ValueError("has an abstain band [lo, hi] with lo above hi; swap them")


def label_of(
    p: float,
    supported: Share,
    partially_supported: Share | None,
    abstain: tuple[Share, Share] | None,
    *,
    contradicted: bool = False,
) -> Label:
    """The label for a probability of support.

    Args:
        contradicted: Whether the label is `contradicted` if the claim is not supported.
    """
    if abstain is not None and abstain[0] <= p < abstain[1]:
        return "abstained"
    if p >= supported:
        return "supported"
    if contradicted:
        return "contradicted"
    if partially_supported is not None and p >= partially_supported:
        return "partially_supported"
    return "unsupported"
