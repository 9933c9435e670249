"""Labeled sets of others: which ones a shipped model may learn from, and under what terms.

The sets are not part of this repository; `prepare` reads them from a folder and leaves out, by name, whatever has no
terms that allow it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.core import keys
from training.authored import Pair


@dataclass(frozen=True, slots=True)
class Terms:
    """What a set is and may be used for.

    Attributes:
        may_ship: Whether weights trained on it may be distributed. A set without a licence is for measuring only.
    """

    what: str
    licence: str
    may_ship: bool


KNOWN = {
    "begin": Terms("dialogue answers beside knowledge (Dziri et al. 2022)", "permissive and CC BY-SA, per part", True),
    "q2": Terms("dialogue answers, consistent or not (Honovich et al. 2021)", "Apache-2.0", True),
    "med": Terms("monotonicity inferences (Yanaka et al. 2019)", "CC BY-SA", True),
    "fever_symmetric": Terms("claim and evidence, balanced (Schuster et al. 2019)", "CC BY-SA", True),
    "wice_subclaims": Terms("parts of Wikipedia sentences (Kamoi et al. 2023)", "ODC-BY, text CC BY-SA", True),
    "healthver": Terms("health claims and papers (Sarrouti et al. 2021)", "none stated", False),
    "climate_fever": Terms("climate claims and Wikipedia (Diggelmann et al. 2020)", "none stated", False),
    "covidfact": Terms("claims and machine-made counter-claims (Saakyan et al. 2021)", "none stated", False),
}


def read(folder: Path, names: Sequence[str]) -> Iterator[Pair]:
    """The pairs of the named sets; those of one premise form a group."""
    for name in names:
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield Pair(row["premise"], row["hypothesis"], row["label"], name, "labeled", keys.key(row["premise"]))
