"""The package beside the command: the same bytes in releases, and the same figures in everything that is counted."""

import inspect
import json
import re
from typing import get_args

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kohort
from kohort import _words


def contents(folder):
    """Every file below a folder. A register's digest is left out: a frame is not the file that it was written to."""
    files = {}
    for path in folder.rglob("*"):
        if path.name in ("manifest.json", "report.json"):
            figures = json.loads(path.read_text())
            for register in figures.get("registers", []):
                assert len(register.pop("sha256")) == 64
            files[path.name] = figures
        elif path.is_file():
            files[str(path.relative_to(folder))] = path.read_bytes()
    return files


@pytest.mark.parametrize("example", ["clinic", "accidents", "register", "university"])
def test_spec_files_give_the_bytes_of_the_command(example, tmp_path, command):
    spec = f"examples/{example}/release.toml"
    command("anonymize", spec, "-o", tmp_path / "by_command")
    kohort.Spec.from_toml(spec).anonymize().write(tmp_path / "by_package")
    expected = contents(tmp_path / "by_command")
    assert len(expected) >= 2 and contents(tmp_path / "by_package") == expected


def people(n=120):
    return pa.table(
        {
            "id": list(range(n)),
            "age": [20 + i * 7 % 60 for i in range(n)],
            "town": [["Ulm", "Bonn", "Kiel", None][i % 4] for i in range(n)],
            "job": [["nurse", "clerk", "cook", "judge"][i // 3 % 4] for i in range(n)],
            "wish": [3 + i % 5 // 4 * 4 for i in range(n)],
            "disease": [["flu", "gout", "asthma"][i // 2 % 3] for i in range(n)],
        }
    )


def visits(n=120):
    return pa.table(
        {
            "no": list(range(2 * n)),
            "patient": [i % n for i in range(2 * n)],
            "code": ["abc"[i % 3] for i in range(2 * n)],
            "cost": [i % 5 for i in range(2 * n)],
        }
    )


def of_one(table, **asked):
    roles = {"k": 4, "identifiers": "id", "quasi": ["age", "town", "job"], "sensitive": "disease", "drop": "wish"}
    return kohort.Spec(table("people"), name="people", **{**roles, **asked})


JOBS = {
    "one_table": lambda table: of_one(table, max_suppressed=0.1, leftovers="suppress"),
    "a_persons_own_k": lambda table: of_one(table, drop=(), person_k="wish", quasi={"age": kohort.steps(10, 20), "town": None, "job": None}),
    "order_of_the_input": lambda table: of_one(table, order="input", algorithm="mondrian", settings={"mondrian": {"cuts": "relaxed"}}),
    "full_domain": lambda table: of_one(table, algorithm="full-domain", quasi={"age": kohort.steps(5, 20), "town": kohort.flat(), "job": kohort.flat()}),
    "a_preset": lambda table: of_one(table, k=None, preset="cms", sensitive={"disease": kohort.t_closeness(0.5) & kohort.l_diversity(2)}),
    "audiences": lambda table: of_one(
        table,
        audiences={"insurer": ["age", "town"], "hr": kohort.Audience(["age", "job"], k=6)},
        collusion={"k": 2, "both": {"audiences": ["insurer", "hr"], "k": 3}},
        settings={"steer": "common"},
    ),
    "a_register": lambda table: kohort.Spec(
        table("people"),
        name="people",
        k=4,
        person="id",
        quasi=["age", "job"],
        sensitive="disease",
        drop=["town", "wish"],
        registers={"town_hall": kohort.Register(table("register"), key="id", date="2026-01-01")},
        register={"method": "direct"},
        delta_presence=(0.0, 1.0),
    ),
    "many_tables": lambda table: kohort.Spec(
        {
            "people": kohort.Table(table("people"), person="id", quasi=["age"], sensitive="disease", drop=["wish", "town", "job"]),
            "visits": kohort.Table(table("visits"), parent=("people", "patient"), quasi="code", plain="cost", drop="no"),
        },
        k=3,
        keys="keep",
        algorithm="miracle",
    ),
}


# How a table becomes a frame, how each library writes its frames with their types, and in which format.
FRAMES = {
    "pandas": (pa.Table.to_pandas, lambda frame, file: frame.to_parquet(file, index=False), "parquet"),
    "polars": (pl.DataFrame, lambda frame, file: frame.write_ipc(file, compat_level=pl.CompatLevel.newest()), "arrow"),
    "pyarrow": (lambda table: table, pq.write_table, "parquet"),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("job", JOBS)
def test_frames_are_released_as_the_command_releases_their_files(job, kind, tmp_path, command):
    tables = {"people": people(), "visits": visits(), "register": people(200).select(["id", "age", "job"])}
    make, write, ending = FRAMES[kind]
    frames = {name: make(table) for name, table in tables.items()}
    for name, frame in frames.items():
        write(frame, tmp_path / f"{name}.{ending}")
    spec = JOBS[job](lambda name: tmp_path / f"{name}.{ending}")
    (tmp_path / "release.toml").write_text(spec.to_toml())
    command("anonymize", tmp_path / "release.toml", "--accept-risks", "-o", tmp_path / "by_command")
    JOBS[job](frames.get).anonymize(accept_risks=True).write(tmp_path / "by_package", format=ending)
    assert contents(tmp_path / "by_package") == contents(tmp_path / "by_command")


def test_bounds_are_written_as_by_the_command(tmp_path, command):
    pq.write_table(people(), tmp_path / "people.parquet")
    spec = of_one(lambda name: tmp_path / f"{name}.parquet")
    (tmp_path / "release.toml").write_text(spec.to_toml())
    command("anonymize", tmp_path / "release.toml", "--cells", "bounds", "--format", "arrow", "-o", tmp_path / "by_command")
    of_one(lambda _: people()).anonymize(cells="bounds").write(tmp_path / "by_package", format="arrow")
    assert contents(tmp_path / "by_package") == contents(tmp_path / "by_command")


@pytest.mark.parametrize("kind", [*FRAMES, "file"])
def test_a_table_larger_than_memory_is_written_in_the_cells_of_the_command(kind, tmp_path, command):
    make, write, ending = FRAMES.get(kind, FRAMES["pyarrow"])
    table = make(people(3000).drop(["id", "wish"]))
    write(table, tmp_path / f"people.{ending}")
    asked = {"identifiers": (), "drop": (), "k": 70}
    spec = of_one(lambda name: tmp_path / f"{name}.{ending}", **asked)
    (tmp_path / "release.toml").write_text(spec.to_toml())
    command("anonymize", tmp_path / "release.toml", "--memory", "64KB", "-o", tmp_path / "by_command")
    given = spec if kind == "file" else of_one(lambda _: table, **asked)
    written = given.write_in_cells(tmp_path / "by_package", memory="64KB", format=ending)
    assert contents(tmp_path / "by_package") == contents(tmp_path / "by_command")
    assert any("cells" in note for note in written.notes), "one cell: the case shows nothing"
    assert written.k >= 70 and written.loss["lm"] > 0 and str(tmp_path) in repr(written)
    assert "<svg" in written._repr_html_()
    assert kohort.verify(written.folder).verdict == "verified"
    assert given.write_in_cells(tmp_path / "again", 10**9).manifest["classes"] == given.anonymize().manifest["classes"]


def test_what_can_not_be_done_in_cells_is_refused(tmp_path):
    spec = of_one(lambda _: people(), order="input")
    with pytest.raises(kohort.InputError, match='order = "input" can\'t be anonymized in cells'):
        spec.write_in_cells(tmp_path / "out", memory="1GB")
    for memory in ("much", "5XB", "", "1e999GB"):
        with pytest.raises(kohort.InputError, match="no size"):
            spec.write_in_cells(tmp_path / "out", memory=memory)
    assert not (tmp_path / "out").exists()


def test_a_verification_counts_what_the_command_counts(tmp_path, command):
    tables = {"people": people(), "visits": visits(), "register": people(200).select(["id", "age", "job"])}
    for job in JOBS:
        JOBS[job](tables.get).anonymize(accept_risks=True).write(tmp_path / job)
        by_command = json.loads(command("verify", tmp_path / job, "--json"))
        found = kohort.verify(tmp_path / job)
        assert found.verdict == by_command["verdict"]
        assert list(found.taken) == by_command["as_manifest_says"] and list(found.unconfirmed) == by_command["not_confirmed"]
        others = {"verified", "verdict", "against", "not_counted", "as_manifest_says", "not_confirmed"}
        assert {**found.counts, "unmet": None} == {**{key: by_command[key] for key in by_command if key not in others}, "unmet": None}


def test_a_release_that_hides_who_is_who_has_no_k_to_be_counted(tmp_path, command):
    n = 60
    table = pa.table({"id": [i // 2 for i in range(n)], "age": [20 + i // 2 % 10 for i in range(n)], "disease": ["flu", "gout", "flu"] * (n // 3)})
    release = kohort.anonymize(table, k=3, person="id", quasi="age", sensitive="disease")
    release.write(tmp_path / "out")
    found = kohort.verify(tmp_path / "out")
    # Two rows of one person look like two persons to readers of the files.
    assert found.verdict == "in_part" and found.k is None and found.counts["k_at_most"] >= 2 * release.k
    assert f"at most {found.counts['k_at_most']}" in found._repr_html_()
    assert release.spec.verify(tmp_path / "out").k == release.k
    assert json.loads(command("verify", tmp_path / "out", "--json"))["k"] is None


def test_a_check_counts_what_the_command_counts(tmp_path, command):
    pq.write_table(people(), tmp_path / "people.parquet")
    flags = ["--quasi", "town,job", "--sensitive", "disease:l=2,t=0.1", "--person", "id", "--k", "9", "--json"]
    by_command = command("check", tmp_path / "people.parquet", *flags, status=1)
    by_command = json.loads(by_command)
    requirement = kohort.l_diversity(2) & kohort.t_closeness(0.1)
    found = kohort.check(people().to_pandas(), quasi=["town", "job"], sensitive={"disease": requirement}, person="id", k=9)
    for name in ("k", "classes", "rows", "persons", "counted", "unique_persons", "sensitive"):
        assert getattr(found, name) == by_command[name], name
    assert {"highest": found.highest_risk, "average": found.average_risk} == by_command["risk"]
    assert [{"persons": size, "classes": n} for size, n in found.class_sizes.items()] == by_command["smallest_classes"]
    assert [report.message for report in found.unmet] == by_command["unmet"] and not found.met


def test_the_risks_of_a_table_are_those_of_the_command(tmp_path, command):
    pq.write_table(people(), tmp_path / "people.parquet")
    flags = ["--quasi", "age,town,job", "--by-column", "--suda", "2", "--population", "5000"]
    by_command = json.loads(command("check", tmp_path / "people.parquet", *flags, "--records", tmp_path / "records.csv", "--json"))
    asked = {"quasi": ["age", "town", "job"], "by_column": True, "suda": 2, "population": 5000}
    for data in (people().to_pandas(), tmp_path / "people.parquet"):
        found = kohort.check(data, **asked).risks
        assert list(found.columns) == by_command["columns"]
        assert (found.suda, found.population) == (by_command["suda"], by_command["population"])
        header, *lines = (tmp_path / "records.csv").read_text().splitlines()
        assert header == ",".join(found.records)
        assert [[float(cell) for cell in line.split(",")] for line in lines] == [list(map(float, row)) for row in zip(*found.records.values(), strict=True)]
    found = kohort.check(people(), quasi=["age", "town"], records=True)
    assert set(found.risks.records) == {"row", "persons", "risk"} and found.risks.suda is None
    assert "unique without" in found._repr_html_() and kohort.check(people(), quasi="age").risks is None
    with pytest.raises(kohort.InputError, match="sets of 0 columns"):
        kohort.check(people(), quasi=["age", "town"], suda=0)
    for wrong in ({"suda": -1}, {"population": -1}):
        with pytest.raises(kohort.InputError, match="no such number"):
            kohort.check(people(), quasi="age", **wrong)
    with pytest.raises(TypeError, match="count all of the table at once"):
        kohort.check(tmp_path / "people.parquet", quasi="age", suda=2, memory="1GB")


def test_a_file_is_checked_as_it_is_said_to_be_read(tmp_path, command):
    text = "name|wage\n" + "".join(f"J\u00fcrgen {n}|{1000 + n % 5},5\n" for n in range(20)) + "?|?\n"
    (tmp_path / "wages.csv").write_bytes(text.encode("latin-1"))
    flags = ["--quasi", "name,wage", "--separator", "|", "--encoding", "windows-1252", "--null", "?", "--decimal", ","]
    by_command = json.loads(command("check", tmp_path / "wages.csv", *flags, "--json"))
    read = {"separator": "|", "encoding": "windows-1252", "null": ["", "?"], "decimal": ","}
    found = kohort.check(tmp_path / "wages.csv", quasi=["name", "wage"], read=read)
    assert (found.k, found.classes, found.rows) == (by_command["k"], by_command["classes"], by_command["rows"]) == (1, 21, 21)
    with pytest.raises(TypeError, match="this table is in memory"):
        kohort.check(people(), quasi="age", read=read)


def test_new_persons_get_the_classes_that_the_command_gives_them(tmp_path, command):
    old, new = people().drop(["wish"]), people(90).drop(["wish"])
    new = new.set_column(0, "id", pa.array(range(1000, 1090)))
    for name, table in (("old", old), ("new", new)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    asked = {"k": 4, "identifiers": "id", "quasi": {"age": kohort.steps(20), "town": kohort.flat(), "job": None}, "sensitive": "disease"}
    earlier = kohort.anonymize(tmp_path / "old.parquet", name="people", **asked)
    earlier.write(tmp_path / "old")
    command("apply", tmp_path / "old", tmp_path / "new.parquet", "--person", "id", "--not-in", tmp_path / "old.parquet", "-o", tmp_path / "by_command")
    compared = {"person": "id", "not_in": tmp_path / "old.parquet"}
    for data in (tmp_path / "new.parquet", new):
        made = kohort.apply(tmp_path / "old", data, **compared)
        made.write(tmp_path / "by_package", format="parquet", force=True)
        assert contents(tmp_path / "by_package") == contents(tmp_path / "by_command")
    # pandas has other types of text, so its files differ where their cells don't.
    frame = kohort.apply(tmp_path / "old", new.to_pandas(), **compared).table
    assert frame.astype(str).equals(made.to_pandas().astype(str)) and made.spec is None
    found = kohort.verify(tmp_path / "by_package", applied_from=tmp_path / "old")
    assert found.verdict == json.loads(command("verify", tmp_path / "by_command", "--applied-from", tmp_path / "old", "--json"))["verdict"] != "not_met"
    assert kohort.apply(earlier, new, identifiers="id").manifest["applied"]["persons_compared"] is False
    with pytest.raises(kohort.InputError, match="persons of the earlier release are in the new table"):
        kohort.apply(tmp_path / "old", old, **compared)
    with pytest.raises(kohort.RequirementUnreachable, match="none of the 5 new persons"):
        kohort.apply(earlier, new.slice(0, 5), identifiers="id")
    older = pa.concat_tables([new, new.slice(0, 4).set_column(1, "age", pa.array([300] * 4))])
    assert kohort.apply(earlier, older, identifiers="id").manifest["persons"]["suppressed"] == 4
    with pytest.raises(kohort.NotMet):
        kohort.apply(earlier, older, identifiers="id", max_suppressed=0.01)
    with pytest.raises(TypeError, match="person=..."):
        kohort.apply(earlier, new, not_in=tmp_path / "old.parquet")
    with pytest.raises(TypeError, match="write the frame to a file"):
        kohort.apply(earlier, new, person="id", not_in=old)
    with pytest.raises(TypeError, match="leave against and memory out"):
        kohort.verify(tmp_path / "by_package", applied_from=earlier, memory="1GB")


def test_values_that_hierarchies_lack_are_those_of_the_command(tmp_path, command):
    pq.write_table(people(), tmp_path / "people.parquet")
    (tmp_path / "town.csv").write_text("Ulm;South;*\nBonn;West;*\n")
    spec = of_one(lambda _: tmp_path / "people.parquet", quasi={"age": None, "town": kohort.hierarchy_file(tmp_path / "town.csv"), "job": None})
    (tmp_path / "release.toml").write_text(spec.to_toml())
    command("anonymize", tmp_path / "release.toml", "--missing", tmp_path / "missing.csv", "-o", tmp_path / "out", status=2)
    missing = spec.missing_values()
    assert [(each.table, each.column, each.value, each.rows) for each in missing] == [("people", "town", "Kiel", 30)]
    assert "Kiel" in (tmp_path / "missing.csv").read_text() and "Kiel" not in repr(missing)
    assert of_one(lambda _: people()).missing_values() == []


def test_an_audit_and_an_estimate_count_what_the_command_counts(tmp_path, command):
    release = of_one(lambda _: people()).anonymize()
    release.write(tmp_path / "out")
    by_command = json.loads(command("audit", tmp_path / "out", "--audience", "reader=age,town", "--k", "4", "--json"))
    found = kohort.audit([release], audiences={"reader": ["age", "town"]}, k=4)
    assert (found.persons, found.met) == (by_command["persons"], by_command["met"])
    together = dict(by_command["audiences"]["reader"]["together"])
    sizes = [[each["persons"], each["classes"]] for each in together.pop("smallest_classes")]
    assert found.audiences["reader"]["together"] == {**together, "smallest_classes": sizes}

    conditions = "age between 20 and 40 and town = 'Ulm'"
    by_command = json.loads(command("estimate", tmp_path / "out", conditions, "--json"))
    found = kohort.estimate(release, conditions)
    assert (found.count, found.of) == (by_command["count"], by_command["of"]) and found.count > 0
    values = {each["value"]: each["count"] for each in by_command["sensitive"]["disease"]}
    assert found.sensitive["disease"] == values
    assert (found.least, found.most) == (by_command["least"], by_command["most"])
    for each in by_command["sensitive"]["disease"]:
        assert tuple(found.bounds["disease"][each["value"]]) == (each["count"], each["least"], each["most"])


def test_estimates_of_groups_and_numbers_are_those_of_the_command(tmp_path, command):
    table = people().append_column("cost", pa.array([n * 7 % 50 for n in range(120)]))
    kohort.anonymize(table, k=4, identifiers="id", quasi=["age", "town", "job"], sensitive=["disease", "cost"], drop="wish").write(tmp_path / "out")
    for by, conditions in (("age:20", ""), ("town", "age >= 30")):
        groups = json.loads(command("estimate", tmp_path / "out", conditions, "--by", by, "--json"))["groups"]
        found = kohort.estimate_by(tmp_path / "out", by, conditions)
        assert len(found) == len(groups) > 1
        for group, (name, estimate) in zip(groups, found.items(), strict=True):
            assert name in group.values() and estimate.count == group["count"]
            numbers = {what: figure._asdict() for what, figure in estimate.numbers["cost"].items()}
            assert numbers == group["numbers"]["cost"]
    assert "at least" in kohort.estimate(tmp_path / "out")._repr_html_()
    with pytest.raises(kohort.InputError, match="how wide groups are"):
        kohort.estimate_by(tmp_path / "out", "age:many")


def test_a_suggestion_is_the_spec_that_the_command_prints(command):
    printed = command("init", "examples/clinic/patients.csv")
    assert printed.startswith("#:schema")
    assert kohort.suggest("examples/clinic/patients.csv").to_toml() == printed.split("\n", 1)[1]


def test_a_hierarchy_is_made_and_read_as_by_the_command(tmp_path, command):
    pq.write_table(people(), tmp_path / "people.parquet")
    for column, rule, hierarchy in (("age", "steps:5,20", kohort.steps(5, 20)), ("town", "mask:left", kohort.mask("left"))):
        made = command("hierarchy", "make", tmp_path / "people.parquet", "--column", column, "--rule", rule)
        tree = hierarchy.tree(people().to_pandas()[column])
        assert sorted(tree.to_csv().splitlines()) == sorted(made.splitlines())
        (tmp_path / "made.csv").write_text(tree.to_csv())
        counted = dict(line.split(maxsplit=1) for line in command("hierarchy", "check", tmp_path / "made.csv").splitlines() if line[:5] != "inner")
        assert (str(tree.n_values), str(tree.height), tree.root) == (counted["values"], counted["height"], counted["root"])
        assert kohort.hierarchy(tree).tree().to_csv() == tree.to_csv()
    values = {"icd10": ["E11.9", "c50", "E10"], "isco": ["2211", "0110"], "nuts": ["DE212", "FR1"], "countries": ["DE", "PL"]}
    for kind in get_args(_words.Classification):
        (tmp_path / "codes.csv").write_text("code\n" + "\n".join(values[kind]) + "\n")
        made = command("hierarchy", "make", tmp_path / "codes.csv", "--column", "code", "--kind", kind)
        assert sorted(kohort.codes(kind, values[kind]).tree().to_csv().splitlines()) == sorted(made.splitlines())
    with pytest.raises(kohort.InputError, match="1 of 2 values are no codes of isco"):
        kohort.codes("isco", ["2211", "CANARY"])
    with pytest.raises(kohort.InputError, match="no codes of 'icd11'"):
        kohort.codes("icd11", ["E11"])
    shown = command("hierarchy", "show", "examples/clinic/hierarchies/diagnosis.csv")
    assert shown.rstrip("\n") == str(kohort.hierarchy_file("examples/clinic/hierarchies/diagnosis.csv").tree())


def test_schemas_are_those_that_the_command_prints(command):
    assert kohort.schema() == json.loads(command("schema"))
    assert kohort.schema("manifest") == json.loads(command("schema", "manifest"))
    assert kohort.schema("report") == json.loads(command("schema", "report"))
    with pytest.raises(kohort.InputError, match="no schema of 'release'"):
        kohort.schema("release")


#: What does in Python what a command does.
COUNTERPARTS = {
    "anonymize": (kohort.anonymize, kohort.Spec.anonymize, kohort.Spec.write_in_cells, kohort.Release.write),
    "apply": (kohort.apply, kohort.Release.write),
    "check": (kohort.check,),
    "audit": (kohort.audit,),
    "verify": (kohort.verify,),
    "report": (kohort.report,),
    "explore": (kohort.explore,),
    "estimate": (kohort.estimate, kohort.estimate_by),
    "hierarchy": (kohort.hierarchy_file, kohort.Hierarchy.tree),
    "init": (kohort.suggest,),
    "schema": (kohort.schema,),
}
#: Commands for terminals, and other programs.
OTHERS = {"explain", "completions", "man", "sql", "serve", "help"}
#: Flags whose parameters have other names: those of a list are plural.
RENAMED = {"identifier": "identifiers", "hierarchy": "hierarchies", "audience": "audiences", "algorithm": "algorithms", "drop_column": "drop_columns", "output": "out"}
#: Flags that say how a CSV file is read, which are keys of one parameter.
OF_READING = set(_words.Read.__annotations__)
#: Flags that are functions of their own.
FUNCTIONS = {"missing": kohort.Spec.missing_values}
#: Flags that say what a terminal is shown, or where it is written.
OF_TERMINALS = {"help", "json", "csv", "plot", "output", "dry_run"}


def listed(command, *arguments):
    return command(*arguments, "--help")


def test_every_command_has_a_counterpart(command):
    commands = re.findall(r"^  ([a-z]+) ", listed(command).split("Commands:")[1].split("Options:")[0], flags=re.MULTILINE)
    assert set(commands) == set(COUNTERPARTS) | OTHERS


@pytest.mark.parametrize("name", [name for name in COUNTERPARTS if name != "hierarchy"])
def test_every_flag_of_a_command_is_a_parameter(name, command):
    flags = {flag.replace("-", "_") for flag in re.findall(r"^ +(?:-., )?--([a-z-]+)", listed(command, name), flags=re.MULTILINE)}
    parameters = {parameter for function in COUNTERPARTS[name] for parameter in inspect.signature(function).parameters}
    if "read" in parameters:
        parameters |= OF_READING
    missing = {flag for flag in flags - OF_TERMINALS - set(FUNCTIONS) if flag not in parameters and RENAMED.get(flag) not in parameters}
    assert flags > {"help"} or name in ("init", "schema")
    assert missing == set()
