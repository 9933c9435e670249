"""What is installed is what was locked: hashes of all packages, commits of CI's actions, and the lists made of them."""

import json
import re

import pytest
from conftest import script
from kit.root import ROOT

lock = script("lock")
LOCKS = {path.name: path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("requirements*.lock"))}


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_pinned_with_hashes(name: str) -> None:
    found = lock.blocks(LOCKS[name])
    assert found
    assert [
        package for package, block in found.items() if not re.search(r"--hash=sha256:[0-9a-f]{64}$", block, re.M)
    ] == []
    assert [pin for pin in lock.pins(LOCKS[name]) if not re.match(r"[\w.\[\]-]+==[\w.+!]+( ; .*)?$", pin)] == []


def test_both_builds_of_torch_have_one_version_and_stand_in_no_other_lock_file_of_the_runtime() -> None:
    versions = {
        block.splitlines()[0].removesuffix(" \\").removesuffix("+cpu")
        for name in ("requirements-torch.lock", "requirements-torch-cpu.lock")
        for package, block in lock.blocks(LOCKS[name]).items()
        if package == lock.TORCH
    }
    assert len(versions) == 1
    assert lock.TORCH not in lock.blocks(LOCKS["requirements-dev.lock"])


def test_tools_have_the_versions_of_the_runtime() -> None:
    assert set(lock.pins(LOCKS["requirements.lock"])) < set(lock.pins(LOCKS["requirements-dev.lock"]))


def test_actions_of_ci_are_pinned_by_commit() -> None:
    used = re.findall(r"uses: (\S+)", (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)] == []


def test_bill_of_materials_has_every_pinned_package_with_hashes(tmp_path) -> None:
    """The pins are the expectation: the runtime's and, of torch, the index's build with its libraries."""
    to = tmp_path / "out" / "bill.json"
    try:
        lock.bill_of_materials(to)
    except ConnectionError:
        pytest.skip("the package index can't be reached")
    found = json.loads(to.read_text(encoding="utf-8"))
    assert found["bomFormat"] == "CycloneDX"
    listed = {f"{part['name']}=={part['version']}" for part in found["components"]}
    pinned = lock.pins(LOCKS["requirements.lock"]) + lock.pins(LOCKS["requirements-torch.lock"])
    assert listed == {pin.partition(" ")[0] for pin in pinned}
    files = [
        file for part in found["components"] for file in part["externalReferences"] if file["type"] == "distribution"
    ]
    assert all(file["hashes"] for file in files)
