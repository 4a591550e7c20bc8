"""Reports of releases and explorations: what the command writes and prints, as objects."""

import json

import pandas as pd
import pytest

import kohort

SPEC = """\
k = 3
algorithm = "mondrian"
[tables.people]
file = "people.csv"
[tables.people.columns]
name = "identifier"
age = { role = "quasi", hierarchy = { steps = [5, 10, 50] } }
zip = { role = "quasi", type = "text", hierarchy = { mask = "right" } }
disease = { role = "sensitive", l = 2 }
"""


@pytest.fixture
def spec(people, tmp_path):
    """The path of a spec whose table is a file."""
    people.to_pandas().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "release.toml").write_text(SPEC)
    return tmp_path / "release.toml"


@pytest.fixture
def folder(spec, tmp_path):
    kohort.Spec.from_toml(spec).anonymize().write(tmp_path / "out")
    return tmp_path / "out"


def test_a_report_is_that_of_the_command(folder, command):
    report = kohort.report(folder)
    assert report.figures == json.loads(command("report", folder, "--json")) == json.loads((folder / "report.json").read_text())
    assert report.html == (folder / "report.html").read_text()
    assert report.figures["achieved"]["k"] >= 3 and set(report.figures) <= set(kohort.schema("report")["properties"])


def test_a_release_in_memory_has_the_report_that_is_written_with_it(spec, folder):
    release = kohort.Spec.from_toml(spec).anonymize()
    assert release.report == kohort.report(folder).figures
    assert release.report_html == (folder / "report.html").read_text()


def test_a_report_is_written_where_its_reader_wants_it(folder, tmp_path):
    kohort.report(folder, out=tmp_path / "elsewhere" / "deep")
    written = sorted(path.name for path in (tmp_path / "elsewhere" / "deep").iterdir())
    assert written == ["report.html", "report.json"]
    for name in ("report.html", "README.txt"):
        (folder / name).unlink()
    kohort.report(folder, out=folder)
    assert kohort.verify(folder).verdict == "verified" and (folder / "README.txt").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(kohort.FileError, match="can't be written"):
        kohort.report(folder, out=tmp_path / "file")


def test_the_owners_report_is_that_of_the_command_and_stays_out_of_the_release(spec, folder, people, tmp_path, command):
    command("report", folder, "--against", spec, "-o", tmp_path / "by_command")
    by_package = kohort.report(folder, against=spec, out=tmp_path / "by_package")
    assert by_package.figures == json.loads((tmp_path / "by_command" / "owner-report.json").read_text())
    assert by_package.html == (tmp_path / "by_command" / "owner-report.html").read_text()
    for name in ("owner-report.html", "owner-report.json"):
        assert (tmp_path / "by_package" / name).read_bytes() == (tmp_path / "by_command" / name).read_bytes()
    with pytest.raises(kohort.InputError, match="is in the release"):
        kohort.report(folder, against=spec, out=folder / "owner")
    assert kohort.report(folder, against=spec, tables={"people": people.to_pandas()}).figures == by_package.figures
    release = kohort.Spec.from_toml(spec).anonymize()
    assert kohort.report(release, against=release.spec).figures["k"] == by_package.figures["k"]


def test_the_owners_report_has_the_figures_that_were_asked_for(spec, folder, tmp_path, command):
    command("report", folder, "--against", spec, "--costs", "--target", "disease", "--population", "5000", "-o", tmp_path / "by_command")
    found = kohort.report(folder, against=spec, costs=True, target="disease", population=5000)
    assert found.figures == json.loads((tmp_path / "by_command" / "owner-report.json").read_text())
    assert set(found.figures) > set(kohort.report(folder, against=spec).figures)
    for alone in ({"costs": True}, {"target": "disease"}, {"population": 5000}):
        with pytest.raises(TypeError, match="figures of the owner's report"):
            kohort.report(folder, **alone)


def test_a_release_that_was_changed_has_no_report(folder):
    table = folder / "people.csv"
    table.write_text(table.read_text().replace("flu", "ful", 1))
    with pytest.raises(kohort.NotMet):
        kohort.report(folder)


def test_a_notebook_shows_the_page_of_a_report_in_a_frame_of_its_own(folder):
    shown = kohort.report(folder)._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!') and "<script" not in shown and shown.count("<") == 2


def test_an_exploration_is_that_of_the_command(spec, tmp_path, command):
    flags = ["--k", "2,3,4,100", "--algorithm", "mondrian,auto", "--max-suppressed", "0,0.2", "--drop-column", "zip", "--json"]
    by_command = json.loads(command("explore", spec, *flags))
    found = kohort.explore(spec, k=[2, 3, 4, 100], algorithms=["mondrian", "auto"], max_suppressed=[0, 0.2], drop_columns="zip")
    assert len(found.series) == len(by_command["series"]) == 8
    for series, expected in zip(found.series, by_command["series"], strict=True):
        for name in ("algorithm", "max_suppressed", "dropped", "knee"):
            assert getattr(series, name) == expected[name]
        for run, run_of_command in zip(series.runs, expected["runs"], strict=True):
            assert (run.k, run.achieved, run.unreachable) == (run_of_command["k"], run_of_command["achieved"], run_of_command.get("unreachable"))
            assert (run.k == series.knee) == run_of_command["knee"]
    assert [risk.message for risk in found.risks] == [risk["message"] for risk in by_command["risks"]]
    command("explore", spec, *flags[:-1], "--plot", tmp_path / "plot.svg")
    assert found.svg == (tmp_path / "plot.svg").read_text()
    assert "100" in found._repr_html_() and found.svg in found._repr_html_()


def test_frames_are_explored_with_the_parameters_of_anonymize(people, roles):
    frame = people.to_pandas()
    found = kohort.explore(frame, **{**roles, "k": range(2, 7)}, steps=3, algorithms="mondrian")
    assert [run.k for run in found.series[0].runs] == [2, 3, 6]
    rows = pd.DataFrame(found.rows)
    assert (rows["reached"] >= rows["k"]).all() and (rows["persons"] == 12).all()
    released = kohort.anonymize(frame, **{**roles, "k": 3}, algorithm="mondrian")
    assert rows.set_index("k").loc[3, "loss"] == released.loss["lm"]


def test_an_exploration_needs_values_of_k(people, roles, spec):
    frame = people.to_pandas()
    with pytest.raises(TypeError, match="there is no default"):
        kohort.explore(frame, **{**roles, "k": None})
    for wrong in (0, [2, -1], 2**32):
        with pytest.raises(kohort.InputError, match="no k"):
            kohort.explore(frame, **{**roles, "k": wrong})
    with pytest.raises(TypeError, match="steps is for a range"):
        kohort.explore(frame, **{**roles, "k": [2, 3]}, steps=2)
    with pytest.raises(TypeError, match="the spec says it already"):
        kohort.explore(spec, k=2, quasi="age")
    with pytest.raises(kohort.InputError, match="algorithm='magic'"):
        kohort.explore(frame, **roles, algorithms="magic")
    with pytest.raises(kohort.InputError, match="disease"):
        kohort.explore(frame, **roles, drop_columns=["disease"])


def test_another_k_or_effort_than_that_of_the_spec_is_asked_for(spec, tmp_path, command):
    command("anonymize", spec, "--k", "4", "--effort", "2", "-o", tmp_path / "by_command")
    job = kohort.Spec.from_toml(spec)
    job.anonymize(k=4, effort=2).write(tmp_path / "by_package")
    for name in ("people.csv", "manifest.json"):
        assert (tmp_path / "by_package" / name).read_bytes() == (tmp_path / "by_command" / name).read_bytes()
    assert job.verify(tmp_path / "by_package", k=4).verdict == "verified"
    assert job.verify(tmp_path / "by_package").verdict == "not_met"
    for wrong in ({"k": 0}, {"effort": 0}, {"effort": 1001}):
        with pytest.raises(kohort.InputError, match=f"{[*wrong][0]}="):
            job.anonymize(**wrong)
    with pytest.raises(TypeError, match="against"):
        kohort.verify(tmp_path / "by_package", k=4)


def test_tables_larger_than_memory_are_planned_checked_and_verified(tmp_path, command):
    frame = pd.DataFrame({"age": [20 + n % 60 for n in range(4000)], "town": ["Ulm", "Bonn"] * 2000})
    frame.to_parquet(tmp_path / "rows.parquet")
    flags = ["--quasi", "age,town", "--k", "5"]
    spec = kohort.Spec(tmp_path / "rows.parquet", k=5, quasi=["age", "town"])
    planned = spec.plan_in_cells("100KB")
    by_command = json.loads(command("anonymize", tmp_path / "rows.parquet", *flags, "--memory", "100KB", "--dry-run", "--json"))
    assert (planned.rows, planned.cells) == (by_command["rows"], by_command["cells"]) and planned.cells > 1
    assert planned.rows_of_largest_cell == by_command["rows_of_largest_cell"]
    assert (planned.bytes_on_disk, planned.passes) == (by_command["bytes_on_disk"], by_command["passes"])

    in_memory = kohort.check(tmp_path / "rows.parquet", quasi=["age", "town"], k=5)
    assert kohort.check(tmp_path / "rows.parquet", quasi=["age", "town"], k=5, memory="1MB") == in_memory
    with pytest.raises(kohort.InputError, match="for tables in files"):
        kohort.check(frame, quasi="age", memory="1MB")

    written = spec.write_in_cells(tmp_path / "out", memory="100KB")
    assert kohort.report(written).figures["persons"]["out"] == 4000
    assert kohort.verify(tmp_path / "out", memory="1MB").verdict == "verified"
    assert kohort.verify(tmp_path / "out", against=spec, memory="1MB").verdict == "verified"


def test_a_file_that_would_not_fit_into_memory_is_announced(tmp_path, monkeypatch):
    frame = pd.DataFrame({"age": [20 + n % 60 for n in range(40_000)], "town": ["Ulm", "Bonn"] * 20_000})
    frame.to_parquet(tmp_path / "rows.parquet")
    spec = kohort.Spec(tmp_path / "rows.parquet", k=5, quasi=["age", "town"], algorithm="mondrian")
    spec.anonymize()
    monkeypatch.setenv("KOHORT_MEMORY", "2MB")
    with pytest.warns(RuntimeWarning, match=r"2 MB are there: Spec.write_in_cells\(folder, memory='1MB'\)"):
        spec.anonymize()
    # A frame is in memory anyway.
    kohort.anonymize(frame, k=5, quasi=["age", "town"], algorithm="mondrian")
    monkeypatch.setenv("KOHORT_MEMORY", "much")
    with pytest.raises(kohort.InputError, match="no size"):
        spec.anonymize()


def test_the_publisher_is_told_how_totals_change():
    person = pd.DataFrame({"id": range(8), "age": [30, 40] * 4})
    visit = pd.DataFrame({"person": [*range(8), 0, 0, 0], "cost": [10] * 8 + [100, 100, 100]})
    release = kohort.anonymize(
        {
            "person": kohort.Table(person, person="id", quasi="age"),
            "visit": kohort.Table(visit, parent=("person", "person"), sensitive="cost"),
        },
        k=4, accept_risks=True,
    )  # fmt: skip
    left_out = len(visit) - len(release.tables["visit"])
    changes = release.total_changes
    assert len(changes) == (left_out > 0)
    for change in changes:
        assert (change["table"], change["column"]) == ("visit", "cost")
        assert change["total"] == pytest.approx(release.tables["visit"]["cost"].sum() / visit["cost"].sum() - 1)
