"""The campaigns that look for what is lost, wrong in silence, or ends in a traceback; `make soak` goes on with them."""

import pytest
from kit.commands import leadline, works
from kit.soak.campaigns import CAMPAIGNS, Bench
from kit.soak.finished import finish
from kit.soak.record import campaigns, keep, seeds

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, without_prefect: dict[str, str]
) -> Bench:
    folder = tmp_path_factory.mktemp("soak")
    leadline("--help", env=without_prefect)  # the first command starts the server of forks, for seconds
    finished = finish(folder / "finished")
    return Bench(finished, folder, without_prefect, lambda: request.getfixturevalue("environment"))


NEEDS = {
    "full disk": (works("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"), "only root may mount a file system"),
    "clock set back": (works("faketime", "--version"), "faketime is not installed (Debian package `faketime`)"),
}


@pytest.mark.parametrize("campaign", campaigns())
def test_nothing_is_lost_or_wrong_in_silence(campaign: str, bench: Bench) -> None:
    there, why = NEEDS.get(campaign, (True, ""))
    if not there:
        pytest.skip(why)
    found = []
    for seed in seeds(campaign):
        tried, problems = CAMPAIGNS[campaign](seed, bench)
        keep(campaign, seed, tried, problems)
        found += [f"{campaign}, seed {seed}: {problem}" for problem in problems]
    assert not found
