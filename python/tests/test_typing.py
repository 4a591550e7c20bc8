"""Type checkers know the package: its own code, the stubs of its module, and programs that use it."""

import subprocess
import sys
from typing import get_args

import pytest
from conftest import REPOSITORY

import kohort
from kohort import _words

CONFIG = REPOSITORY / "python" / "pyproject.toml"


def mypy(folder, *arguments, module="mypy"):
    """What mypy says, or the empty text if it finds nothing."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return "" if outcome.returncode == 0 else outcome.stdout + outcome.stderr


def test_the_package_is_typed_strictly(tmp_path):
    package = REPOSITORY / "python" / "python" / "kohort"
    assert mypy(tmp_path, "--config-file", CONFIG, package) == ""


def test_the_stubs_are_those_of_the_module(tmp_path):
    assert mypy(tmp_path, "--mypy-config-file", CONFIG, "kohort._kohort", module="mypy.stubtest") == ""


PROGRAM = """\
import kohort
from typing import Any, assert_type

frame: Any = None
release = kohort.anonymize(
    frame, k=5, person="id", identifiers=["name"], quasi={"age": kohort.steps(5, 10, 50), "zip": kohort.mask()},
    sensitive={"disease": kohort.l_diversity(3) & kohort.t_closeness(0.2, "ordered")}, leftovers="merge", cells="bounds",
)
assert_type(release, kohort.Release)
assert_type(release.k, int)
assert_type(kohort.check(frame, quasi=["age"]).class_sizes, dict[int, int])
assert_type(kohort.Spec.from_toml("release.toml").anonymize(threads=2), kohort.Release)
assert_type(kohort.Spec(frame, k=5).verify("out").verdict == "verified", bool)
kohort.Spec(frame, k=5, quasi="age").write_in_cells("out", memory="2GB").k
kohort.anonymize(
    frame, k=5, quasi={"age": kohort.Column(top=kohort.quantile(0.99), truncate="month")}, mondrian={"cuts": "relaxed"},
    read={"separator": ";"}, collusion=kohort.Coalition(k=2), plain={"day": kohort.Column(truncate="year")},
)
kohort.anonymize(
    frame, k=5, quasi={"age": kohort.Column(weight=2)}, objective="target:disease", pseudonyms={"id": "pseudonyms.key"},
    register={"method": "auto"},
)
assert_type(kohort.apply("out", frame, identifiers=["name"], max_suppressed=0.1), kohort.Release)
assert_type(kohort.check(frame, quasi="age", suda=3, read={"decimal": ","}).risks, kohort.Risks | None)
assert_type(kohort.Spec(frame, k=5).missing_values()[0].rows, int)
assert_type(kohort.report("out", against="release.toml", costs=True).figures["k"], Any)
assert_type(kohort.explore(frame, k=range(2, 9), quasi="age").series[0].knee, int | None)
assert_type(kohort.estimate_by("out", "age:10")["[20,29]"].count, float)
"""

WRONG = """\
import kohort

kohort.anonymize("a.csv", kay=3)  # type: ignore[call-arg]
kohort.anonymize("a.csv", k="5", quasi="age")  # type: ignore[arg-type]
kohort.anonymize("a.csv", k=5, quasi=3)  # type: ignore[arg-type]
kohort.anonymize("a.csv", k=5, cells="median")  # type: ignore[arg-type]
kohort.anonymize("a.csv", k=5, algorithm="magic")  # type: ignore[arg-type]
kohort.check("a.csv")  # type: ignore[call-arg]
kohort.t_closeness(0.2, "far")  # type: ignore[arg-type]
kohort.Column(type="number")  # type: ignore[arg-type]
kohort.Column(weight="heavy")  # type: ignore[arg-type]
kohort.Column(truncate="week")  # type: ignore[arg-type]
kohort.Spec("a.csv", k=5, mondrian={"cut": "relaxed"})  # type: ignore[arg-type]
"""


@pytest.mark.parametrize("code", [PROGRAM, WRONG], ids=["right", "wrong"])
def test_programs_are_checked(code, tmp_path):
    # In strict mode, a comment that ignores an error is itself an error where there is none.
    (tmp_path / "program.py").write_text(code)
    assert mypy(tmp_path, "--strict", "program.py") == ""


def test_the_words_of_parameters_are_those_of_a_spec():
    properties = kohort.schema()["properties"]
    definitions = str(kohort.schema())
    for name, word in (("algorithm", _words.Algorithm), ("leftovers", _words.Leftovers), ("order", _words.Order)):
        assert sorted(get_args(word)) == sorted(properties[name]["enum"])
    for name, word in (("keys", _words.Keys), ("hierarchies", _words.Hierarchies), ("preset", _words.Preset)):
        assert sorted(get_args(word)) == sorted(properties[name]["enum"])
    for word in (_words.Distance, _words.Level, _words.ValueType):
        assert str(list(get_args(word))) in definitions
