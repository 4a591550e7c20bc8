"""Tables that tests share, and the command that the package is compared with."""

import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

REPOSITORY = Path(__file__).parents[2]
CLINIC = REPOSITORY / "examples" / "clinic"


@pytest.fixture(autouse=True)
def at_the_repository(monkeypatch):
    """Examples in docstrings and documents name files from the folder of the repository."""
    monkeypatch.chdir(REPOSITORY)


@pytest.fixture
def command():
    """Runs the command `kohort` of the same build. A missing command fails."""
    program = os.environ["KOHORT_COMMAND"]

    def run(*arguments, status=0):
        outcome = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert outcome.returncode == status, outcome.stderr
        return outcome.stdout

    return run


@pytest.fixture
def people():
    """Twelve people, as a table of pyarrow."""
    return pa.table(
        {
            "name": [f"CANARY{n}" for n in range(12)],
            "age": [23, 27, 29, 41, 44, 48, 52, 55, 58, 61, 64, 68],
            "zip": ["88512", "88513", "88590", "10115", "10117", "10119", "10200", "10201", "10210", "77100", "77110", "77120"],
            "disease": ["flu", "gout", "flu", "flu", "gout", "asthma"] * 2,
        }
    )


@pytest.fixture
def roles():
    """What `people` are for."""
    import kohort

    return {
        "k": 3,
        "identifiers": "name",
        "quasi": {"age": kohort.steps(5, 10, 50), "zip": kohort.Column(kohort.mask(), type="text")},
        "sensitive": {"disease": kohort.l_diversity(2)},
    }
