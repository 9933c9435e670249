"""The images name what is there: files, stages and commands, without a Docker daemon to build them."""

import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from kit.root import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STEPS = re.findall(r"^([A-Z]+)[ ]+(.*)$", re.sub(r"\\\n\s*", " ", DOCKERFILE), re.MULTILINE)
STAGES = {rest.split()[-1]: rest.split()[0] for step, rest in STEPS if step == "FROM"}
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
GPU = yaml.safe_load((ROOT / "compose.gpu.yaml").read_text(encoding="utf-8"))
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]


def steps(stage: str) -> list[tuple[str, str]]:
    """Of a stage and of those that it begins with."""
    found: list[tuple[str, str]] = []
    now = ""
    for step, rest in STEPS:
        now = rest.split()[-1] if step == "FROM" else now
        found += [(step, rest)] if now == stage else []
    return (steps(STAGES[stage]) if STAGES[stage] in STAGES else []) + found


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps a path out: the last pattern that matches it, or a folder above it, decides."""
    out = False
    places = [PurePosixPath(path), *PurePosixPath(path).parents]
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        if line and not line.startswith("#") and any(place.match(pattern) for place in places if place.name):
            out = not line.startswith("!")
    return out


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_an_image_runs_leadline_as_a_user_without_rights(target: str) -> None:
    mine = steps(target)
    assert [rest for step, rest in mine if step == "USER"] == ["leadline"]
    last = [step for step, _ in mine]
    assert last.index("USER") > max(i for i, step in enumerate(last) if step in ("RUN", "COPY"))
    (entry,) = (yaml.safe_load(rest) for step, rest in mine if step == "ENTRYPOINT")
    assert entry == ["leadline"]
    assert "leadline" in SCRIPTS
    assert any(step == "RUN" and "useradd" in rest and "--uid 10001" in rest for step, rest in mine)


def test_all_that_is_installed_is_locked_with_hashes() -> None:
    installs = [
        part for step, rest in STEPS if step == "RUN" for part in rest.split("&&") if re.search(r"\bpip install", part)
    ]
    assert len(installs) == 6
    defaults = dict(rest.split("=", 1) for step, rest in STEPS if step == "ARG")
    for words in map(shlex.split, installs):
        if "--editable" in words:
            assert "--require-build-hashes" in words
            assert words[words.index("--build-constraints") + 1] == "requirements-dev.lock"
            continue
        assert "--require-hashes" in words
        for flag, name in pairwise(words):
            if flag == "-r":
                file = re.sub(r"\$\{(\w+)\}", lambda m: defaults[m[1]], name)
                assert file == "/tmp/uv.lock" or (ROOT / file).is_file()


def test_uv_is_found_in_the_lock_file() -> None:
    (pattern,) = {m for _, rest in STEPS for m in re.findall(r"sed -n '/(.*?)/,", rest)}
    assert re.search(pattern, (ROOT / "requirements-dev.lock").read_text(encoding="utf-8"), re.MULTILINE)


def test_what_the_image_needs_is_sent_and_nothing_private() -> None:
    needed = ("flows/deployments.py", "tasks/models/entailment/README.md", "sql/macros.sql", "configs/nightly.yaml",
              "data/sample/2026-11-01.jsonl", "data/judge_suite/README.md", "prefect.yaml", "pyproject.toml",
              "requirements.lock", "requirements-ducklake.lock", "README.md", "LICENSE")  # fmt: skip
    for path in needed:
        assert (ROOT / path).exists(), path
        assert not ignored(path), path
    for path in (".git/config", ".env", ".venv/bin/python", "data/lake/traces", "tests/conftest.py", "data/x.duckdb"):
        assert ignored(path), path
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert not [p for p in packaged["targets"]["wheel"]["force-include"] if ignored(p)]


def test_compose_names_stages_services_volumes_and_secrets_that_exist() -> None:
    services: dict[str, Any] = COMPOSE["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services)
        if "build" in service:
            assert service["build"]["target"] == "${LEADLINE_TARGET:-cpu}"
        for volume in service.get("volumes", []):
            place = volume.split(":")[0]
            assert place in COMPOSE["volumes"] or (ROOT / place).exists(), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        for variable, value in service.get("environment", {}).items():
            if "PASSWORD" in variable or "SECRET" in variable:
                assert value.startswith("${"), variable  # never in the file
    assert {"cpu", "gpu"} <= set(STAGES)
    assert set(GPU["services"]) <= set(services)


def test_commands_of_compose_are_those_of_the_page() -> None:
    """A test of whole nights runs the page's."""
    (script,) = COMPOSE["services"]["setup"]["command"]
    made = [line.partition("|| ")[2] or line for line in script.splitlines() if line.startswith("prefect")]
    assert len(made) == 4
    made.append(shlex.join(COMPOSE["services"]["worker"]["entrypoint"]))
    assert [line for line in made if f".venv/bin/{line}\n" not in OPERATIONS] == []
    server = shlex.join(COMPOSE["services"]["prefect"]["entrypoint"]).replace("0.0.0.0", "127.0.0.1")
    assert f".venv/bin/{server}\n" in OPERATIONS
