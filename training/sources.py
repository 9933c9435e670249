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
    "hagrid": Terms("answers and passages they cite (Kamalloo et al. 2023)", "Apache-2.0, text CC BY-SA", True),
    "factcheck_gpt": Terms("claims of ChatGPT and searched pages (Wang et al. 2024)", "Apache-2.0", True),
    "fool_me_twice": Terms("claims written to mislead (Eisenschlos et al. 2021)", "Apache-2.0, text CC BY-SA", True),
    **{
        f"summedits_{part}": Terms("sentences of edited summaries (Laban et al. 2023)", "Apache-2.0, QMSum MIT", True)
        for part in ("sales_call", "sales_email", "scitldr", "qmsumm")
    },
    "conjnli": Terms("and, or, but, nor (Saha et al. 2020)", "MIT, text CC BY-SA", True),
    "cad_nli": Terms("minimal twins written by people (Kaushik et al. 2020)", "Apache-2.0, text CC BY-SA", True),
    "snli_dev_test": Terms("captions (Bowman et al. 2015)", "CC BY-SA", True),
    "mnli_textfooler": Terms("many genres, words replaced (Jin et al. 2020)", "MIT, MNLI open", True),
    "negation_nli": Terms("negation (Hossain et al. 2020)", "MIT", True),
    "scone": Terms("scope of negation (She et al. 2023)", "CC0", True),
    "breaking_nli": Terms("one word swapped (Glockner et al. 2018)", "CC BY-SA", True),
    "infotabs": Terms("statements on infoboxes (Gupta et al. 2020)", "Apache-2.0", True),
    "tabfact_pairs": Terms("a true and a false statement on a table (Chen et al. 2020)", "MIT", True),
    "pawsx_en": Terms("paraphrases with swapped words (Yang et al. 2019)", "free for any use", True),
    "folio": Terms("conditions and rules (Han et al. 2022)", "CC BY-SA", True),
    "gqnli": Terms("quantifiers (Cui et al. 2022)", "CC BY", True),
    "ambient": Terms("modality and scope (Liu et al. 2023)", "CC BY", True),
    "hans": Terms("templates: swaps, passives (McCoy et al. 2019)", "MIT", True),
    "clcd": Terms("counting, comparatives, lists (Salvatore et al. 2019)", "MIT", True),
    "pararule_plus": Terms("rules (Bao et al. 2022)", "MIT", True),
    "taxinli_mnli": Terms(
        "MNLI with tags (Joshi et al. 2020)", "C-UDA 1.0: models may be passed on, the data not", True
    ),
    "healthver": Terms("health claims and papers (Sarrouti et al. 2021)", "none stated", False),
    "climate_fever": Terms("climate claims and Wikipedia (Diggelmann et al. 2020)", "none stated", False),
    "covidfact": Terms("claims and machine-made counter-claims (Saakyan et al. 2021)", "none stated", False),
}


def files(folders: Sequence[Path], name: str) -> list[Path]:
    """The files of a set."""
    return [path for folder in folders if (path := folder / f"{name}.jsonl").exists()]


def read(folders: Sequence[Path], names: Sequence[str]) -> Iterator[Pair]:
    """The pairs of the named sets; those of one premise form a group where the set states none."""
    for name in names:
        for path in files(folders, name):
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                group = f"{name}:{row['group']}" if row.get("group") else keys.key(row["premise"])
                yield Pair(row["premise"], row["hypothesis"], row["label"], name, row.get("skill", "labeled"), group)
