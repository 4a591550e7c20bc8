"""Exceptions say what is wrong and where, and never a cell."""

import inspect
import os
import re
import traceback

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kohort


def test_there_is_no_default_k(people, roles):
    del roles["k"]
    with pytest.raises(TypeError, match="k is missing, and there is no default"):
        kohort.anonymize(people, **roles)
    with pytest.raises(TypeError, match="keep one"):
        kohort.anonymize(people, **roles, k=3, preset="ema")


def test_every_parameter_is_listed_and_no_other_is_taken(people, roles):
    of_spec = inspect.signature(kohort.Spec).parameters
    of_call = inspect.signature(kohort.anonymize).parameters
    assert list(of_spec)[:4] == ["data", "k", "preset", "person"] and len(of_spec) == 34
    assert list(of_call) == [*of_spec, "cells", "accept_risks", "threads", "progress"]
    assert str(of_call["k"]) == "k: 'int | None' = None" and str(of_call["cells"]) == "cells: 'Cells' = 'labels'"
    with pytest.raises(TypeError, match="unexpected keyword argument 'kay'"):
        kohort.anonymize(people, **roles, kay=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'cells'"):
        kohort.Spec(people, **roles, cells="labels")


def test_no_role_is_guessed(people, roles):
    del roles["identifiers"]
    roles["sensitive"] = ()
    with pytest.raises(kohort.InputError) as caught:
        kohort.anonymize(people, **roles)
    message = str(caught.value)
    assert "'name'" in message and "'disease'" in message and "role" in message
    assert caught.value.reports[0].hint


def test_a_column_has_one_role(people, roles):
    with pytest.raises(TypeError, match="'age' has two roles, 'plain' and 'quasi'"):
        kohort.anonymize(people, **roles, plain="age")


def test_an_unreachable_requirement_has_fields(people, roles):
    with pytest.raises(kohort.RequirementUnreachable) as caught:
        kohort.anonymize(people, **{**roles, "k": 13})
    error = caught.value
    assert (error.reason, error.persons, error.k) == ("too_few_persons", 12, 13)
    with pytest.raises(kohort.RequirementUnreachable) as caught:
        kohort.anonymize(people, **{**roles, "sensitive": {"disease": kohort.l_diversity(4)}})
    assert (caught.value.reason, caught.value.column) == ("too_frequent", "disease")


def test_numbers_that_are_none_of_a_spec_are_refused(people, roles):
    for k in (0, -1, 2.5, True, "5", 2**70):
        with pytest.raises(kohort.InputError):
            kohort.anonymize(people, **{**roles, "k": k})
    for threads in (0, -1):
        with pytest.raises(kohort.InputError, match=f"threads={threads}"):
            kohort.anonymize(people, **roles, threads=threads)
        with pytest.raises(kohort.InputError, match=f"threads={threads}"):
            kohort.check(people, quasi="age", threads=threads)


def test_every_problem_of_a_spec_is_said_at_once(people, roles):
    with pytest.raises(kohort.InputError) as caught:
        kohort.anonymize(people, **{**roles, "k": 0}, algorithm="magic", max_suppressed=2.0)
    assert len(caught.value.reports) == 3


def test_a_blatant_risk_is_refused_unless_it_is_accepted():
    persons = pa.table({"age": [20 + n % 9 for n in range(60)], "locker": [f"L{n}" for n in range(60)]})
    with pytest.raises(kohort.RiskError) as caught:
        kohort.anonymize(persons, k=2, plain="locker", quasi="age")
    assert caught.value.risks == ("plain_tells_apart",)
    release = kohort.anonymize(persons, k=2, plain="locker", quasi="age", accept_risks=True)
    assert release.accepted_risks and release.manifest["accepted_risks"]
    assert "accepted risk" in release._repr_html_()


def test_hints_name_parameters_of_python(people, roles, tmp_path):
    release = kohort.anonymize(people, **roles)
    release.write(tmp_path / "out")
    with pytest.raises(kohort.InputError) as caught:
        release.write(tmp_path / "out")
    assert caught.value.reports[0].hint == "name another folder, or replace the release with force=True"

    persons = pa.table({"age": [20 + n % 9 for n in range(60)], "locker": [f"L{n}" for n in range(60)]})
    with pytest.raises(kohort.RiskError) as caught:
        kohort.anonymize(persons, k=2, plain="locker", quasi="age")
    assert "give accept_risks=True if none of them matters" in caught.value.reports[-1].hint

    with pytest.raises(kohort.InputError, match="or quasi='locker'"):
        kohort.anonymize(persons, k=2, quasi="age")
    taken = pa.table({"age": [20 + n % 9 for n in range(60)], "age_lo": ["x"] * 60})
    with pytest.raises(kohort.InputError, match="rename 'age_lo', or use cells='labels'"):
        kohort.anonymize(taken, k=2, quasi="age", plain="age_lo", cells="bounds").table
    other = people.select(["age"]).slice(0, 6)
    with pytest.raises(kohort.InputError, match="for example person='id'"):
        kohort.audit([people.select(["age"]), other], audiences={"reader": ["age"]}, k=2)


def test_no_hint_of_the_library_names_a_flag():
    """The command words its flags itself: the library serves Python as well."""
    from conftest import REPOSITORY

    named = []
    for crate in ("model", "core", "verify", "io", "kohort"):
        files = list((REPOSITORY / "crates" / crate / "src").rglob("*.rs"))
        # Reports tell their readers which command to run.
        files = [file for file in files if file.parent.name != "report"]
        assert files
        for file in files:
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                code = line.split("//")[0]
                if re.search(r'"[^"]*(?<![\w-])(--[a-z]+|-o )', code) and "cargo test" not in code:
                    named.append(f"{file.name}:{number}: {line.strip()}")
    # The tests of the words themselves show flags.
    assert [line for line in named if not line.startswith("wording.rs")] == []


def test_a_missing_file_is_named(tmp_path, roles):
    with pytest.raises(kohort.InputError, match="nothing.csv"):
        kohort.anonymize(tmp_path / "nothing.csv", **roles)
    with pytest.raises(FileNotFoundError, match="nothing.toml"):
        kohort.Spec.from_toml(tmp_path / "nothing.toml")
    with pytest.raises(kohort.InputError):
        kohort.verify(tmp_path / "nothing")


def test_a_spec_file_names_lines(tmp_path):
    (tmp_path / "release.toml").write_text("k = 0\n[tables.x]\nfile = 3\n")
    with pytest.raises(kohort.InputError, match="line 1"):
        kohort.Spec.from_toml(tmp_path / "release.toml")


def test_something_else_than_a_table_is_refused(roles):
    for data in (3, None, [1, 2], pd.Series([1, 2], name="age"), pa.array([1, 2])):
        with pytest.raises((TypeError, kohort.InputError)):
            kohort.anonymize(data, **roles)


def test_exceptions_fit_pythons_own():
    assert issubclass(kohort.InputError, ValueError)
    assert issubclass(kohort.FileError, OSError)
    assert issubclass(kohort.MissingLibrary, ImportError)
    for name in ("InputError", "RequirementUnreachable", "RiskError", "NotMet", "CannotTell", "Fault", "Cancelled"):
        assert issubclass(getattr(kohort, name), kohort.KohortError)


def canary_frames():
    """Frames in which every cell is a canary, each with something wrong."""
    cells = [f"CANARY{n}" for n in range(8)]
    good = {"a": cells, "b": [f"CANARY{n}" for n in range(8, 16)], "c": [f"CANARY{n}" for n in range(16, 24)]}
    yield "no role", good, {"quasi": "a", "plain": "b"}
    yield "too few persons", good, {"quasi": ["a", "b"], "plain": "c", "k": 9}
    yield "unknown column", good, {"quasi": ["a", "z"], "drop": ["b", "c"]}
    yield "text as steps", good, {"quasi": {"a": kohort.steps(5)}, "drop": ["b", "c"]}
    yield "text as numbers", good, {"quasi": {"a": kohort.Column(type="integer")}, "drop": ["b", "c"]}
    yield "text as dates", good, {"quasi": {"a": kohort.date()}, "drop": ["b", "c"]}
    yield "not in the hierarchy", good, {"quasi": {"a": kohort.hierarchy({"x": "*"})}, "drop": ["b", "c"]}
    yield "own k is text", good, {"quasi": "a", "person_k": "b", "drop": "c"}
    yield "nobody is named", {**good, "c": [None] * 8}, {"quasi": "a", "person": "c", "drop": "b"}
    yield "several types", {**good, "c": ["CANARY1", 2, b"CANARY3", 4.5, {}, [], None, 8]}, {"quasi": "a", "drop": ["b", "c"]}
    yield "mixed numbers", {**good, "c": [1, "CANARY2", 3, 4, 5, 6, 7, 8]}, {"quasi": "a", "drop": ["b", "c"]}
    yield "too much asked", good, {"quasi": "a", "sensitive": {"b": kohort.l_diversity(99)}, "drop": "c"}


@pytest.mark.parametrize(("what", "cells", "asked"), list(canary_frames()), ids=lambda value: value if isinstance(value, str) else "")
def test_no_cell_is_in_an_exception(what, cells, asked):
    frames = [pd.DataFrame(cells)]
    if what not in ("several types", "mixed numbers"):
        frames += [pl.DataFrame(cells), pa.table(cells)]
    for frame in frames:
        with pytest.raises((kohort.KohortError, TypeError)) as caught:
            kohort.anonymize(frame, **{"k": 2, **asked})
        error = caught.value
        seen = [str(error), repr(error), "".join(traceback.format_exception(error)), str(getattr(error, "reports", ""))]
        while error is not None:
            seen += [str(error), repr(vars(error))]
            error = error.__cause__ or error.__context__
        # The source line of this very test is in a traceback; it holds no cell.
        assert not any("CANARY" in text for text in seen), seen


def test_the_words_of_a_failing_producer_are_not_passed_on(roles):
    def batches():
        yield pa.record_batch({"name": ["a"]})
        raise ValueError("CANARY in the middle")

    class Failing:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ValueError("CANARY at once")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("name", pa.string())]), batches())
    for data in (reader, Failing()):
        with pytest.raises(kohort.InputError) as caught:
            kohort.anonymize(data, **roles)
        assert "CANARY" not in str(caught.value)


def test_rows_that_are_null_are_refused_and_what_lies_below_them_is_not_read():
    columns = [pa.array([20, 21, 22] * 4), pa.array(["flu", "CANARY", "cold"] * 4)]
    rows = pa.StructArray.from_arrays(columns, names=["age", "disease"], mask=pa.array([False, True, False] * 4))
    for data, error in ((rows, TypeError), (pa.chunked_array([rows]), kohort.InputError)):
        with pytest.raises(error) as caught:
            kohort.anonymize(data, k=2, quasi="age", sensitive="disease")
        assert "CANARY" not in str(caught.value)
    whole = pa.chunked_array([pa.StructArray.from_arrays(columns, names=["age", "disease"])])
    assert kohort.check(whole, quasi="age").k == 4


def test_a_missing_library_is_named(people, roles, monkeypatch):
    import builtins

    release = kohort.anonymize(people, **roles)
    found = builtins.__import__

    def without(name, *rest):
        if name in ("polars", "pyarrow"):
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(kohort.MissingLibrary, match="pip install polars"):
        release.to_polars()
    with pytest.raises(ImportError, match="pip install pyarrow"):
        kohort.anonymize(pd.DataFrame({"age": [1]}), k=1, quasi="age")


def test_the_package_needs_no_other_library():
    import subprocess
    import sys

    code = (
        "import sys\n"
        "for name in ('pandas', 'polars', 'pyarrow', 'numpy', 'duckdb', 'IPython'): sys.modules[name] = None\n"
        "import kohort\n"
        f"r = kohort.Spec.from_toml({str(os.path.abspath('examples/clinic/release.toml'))!r}).anonymize()\n"
        "print(r.table.num_rows, len(r._repr_html_()) > 100)"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split()[1] == "True"
