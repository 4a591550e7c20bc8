"""Everything that the command does: many tables, audiences, registers, presets, hierarchies, a person's own k."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kohort


def test_many_tables_are_a_dict_of_frames():
    persons = pd.DataFrame({"id": range(24), "age": [30 + n % 6 for n in range(24)], "sex": ["m", "f"] * 12})
    visits = pl.DataFrame(
        {"patient": [n for n in range(24) for _ in range(2)], "code": ["a", "b", "c", "a"] * 12, "cost": [n % 5 for n in range(48)]}
    )
    release = kohort.anonymize(
        {
            "patient": kohort.Table(persons, person="id", quasi=["age", "sex"]),
            "visit": kohort.Table(visits, parent=("patient", "patient"), quasi=["code"], sensitive={"cost": kohort.l_diversity(2)}),
        },
        k=3,
    )
    assert release.k >= 3
    assert isinstance(release.tables["patient"], pd.DataFrame) and isinstance(release.tables["visit"], pl.DataFrame)
    assert set(release.tables["visit"]["patient"]) <= set(release.tables["patient"]["id"])
    with pytest.raises(TypeError, match="several tables"):
        release.table
    assert release.to_polars("patient").height == 24
    with pytest.raises(TypeError, match="roles of their own"):
        kohort.anonymize({"a": kohort.Table(persons)}, k=3, quasi="age")
    with pytest.raises(TypeError, match="kohort.Table"):
        kohort.anonymize({"a": persons}, k=3)


def drivers():
    n = 60
    return pa.table(
        {
            "age": [20 + i % 12 for i in range(n)],
            "car": [["vw", "fiat", "bmw"][i % 3] for i in range(n)],
            "job": [["nurse", "clerk", "cook", "judge"][i % 4] for i in range(n)],
            "disease": [["flu", "gout", "asthma"][i // 2 % 3] for i in range(n)],
        }
    )


def test_audiences_and_collusion():
    release = kohort.anonymize(
        drivers(),
        k=4,
        quasi=["age", "car", "job"],
        sensitive="disease",
        audiences={"insurer": ["age", "car"], "hr": kohort.Audience(["age", "job"], k=5)},
        collusion=2,
    )
    achieved = release.manifest["achieved"]
    assert achieved["audiences"]["insurer"] >= 4 and achieved["audiences"]["hr"] >= 5 and achieved["collusion_k"] >= 2
    for quasi, k in ((["age", "car"], 4), (["age", "job"], 5), (["age", "car", "job"], 2)):
        assert kohort.check(release.table, quasi=quasi).k >= k
    assert "insurer" in release._repr_html_()


def test_a_coalition_and_a_column_that_an_audience_must_not_learn():
    spec = kohort.Spec(
        drivers(),
        k=2,
        quasi={"age": None, "car": None, "job": kohort.Column(sensitive_to=["insurer"], requirements=kohort.l_diversity(2))},
        sensitive="disease",
        audiences={"insurer": ["age", "car"], "hr": ["age", "job"]},
        collusion={"both": {"audiences": ["insurer", "hr"], "k": 2, "sensitive": {"disease": kohort.l_diversity(2)}}},
    )
    manifest = spec.anonymize().manifest
    assert manifest["requirement"]["coalitions"]["both"]["sensitive"] == {"disease": {"l": 2}}
    assert manifest["audiences"]["insurer"]["sensitive"] == {"job": {"l": 2}}


def test_a_register_hides_people():
    n = 40
    register = pd.DataFrame({"no": range(n), "AGE": [20 + i % 20 for i in range(n)], "zip": [f"1{i % 4}" for i in range(n)]})
    private = pa.table(
        {
            "id": list(range(0, n, 4)),
            "age": [20 + i % 20 for i in range(0, n, 4)],
            "zip": [f"1{i % 4}" for i in range(0, n, 4)],
            "disease": ["flu", "gout"] * (n // 8),
        }
    )
    release = kohort.anonymize(
        private,
        k=5,
        person="id",
        quasi={"age": None, "zip": kohort.Column(type="text")},
        sensitive="disease",
        registers={"voters": kohort.Register(register, key="no", columns={"age": "AGE"}, date="2026-01-01")},
    )
    assert release.k >= 5
    entry = release.manifest["registers"][0]
    assert (entry["name"], entry["rows"], entry["date"]) == ("voters", n, "2026-01-01")
    assert isinstance(release.tables["table"], pa.Table) and len(release.tables) == 2


def test_a_preset_is_the_k_of_an_agency(people, roles):
    del roles["k"]
    assert kohort.anonymize(people, **roles, preset="ema").manifest["requirement"]["k"] == 12
    assert kohort.anonymize(people, **roles, preset="cms").k >= 11


def test_a_persons_own_k_is_honoured(people, roles):
    wishes = people.append_column("wish", pa.array([1] * 11 + [6]))
    release = kohort.anonymize(wishes, **roles, person_k="wish")
    assert release.manifest["requirement"]["person_k"]
    table = release.to_arrow()
    assert "wish" not in table.column_names
    assert max(table.group_by(["age", "zip"]).aggregate([([], "count_all")]).column("count_all").to_pylist()) >= 6


def test_hierarchies_from_dicts_rows_frames_and_files(people, roles, tmp_path):
    zips = people.column("zip").to_pylist()
    rows = [[code, code[:2] + "***", "*"] for code in dict.fromkeys(zips)]
    (tmp_path / "zip.csv").write_text("".join(";".join(row) + "\n" for row in rows))
    frame = pd.DataFrame(rows, columns=["zip", "area", "all"])
    edges = {code: code[:2] + "***" for code in zips} | {code[:2] + "***": "*" for code in zips}
    nested = {"*": {area: [code for code in zips if code[:2] + "***" == area] for area in {c[:2] + "***" for c in zips}}}
    given = [
        kohort.hierarchy(rows),
        kohort.hierarchy(edges),
        kohort.hierarchy(nested),
        kohort.hierarchy(frame),
        kohort.hierarchy(pl.DataFrame(frame)),
        kohort.hierarchy(pa.table(frame)),
        kohort.hierarchy_file(tmp_path / "zip.csv"),
        str(tmp_path / "zip.csv"),
    ]
    released = []
    for tree in given:
        roles["quasi"] = {"age": None, "zip": kohort.Column(tree, type="text")}
        released.append(kohort.anonymize(people, **roles).to_csv())
    assert len(set(released)) == 1 and "88***" in released[0]


def test_dates_are_levelled():
    days = pd.DataFrame({"born": pd.date_range("1980-01-01", periods=60, freq="30D").date})
    for hierarchy in (kohort.date(), kohort.dates("month", "year")):
        assert kohort.anonymize(days, k=5, quasi={"born": hierarchy}).k >= 5
    with pytest.raises(kohort.InputError, match="minute"):
        kohort.anonymize(days, k=5, quasi={"born": kohort.dates("minute")})


def test_requirements_are_those_of_a_spec(people, roles):
    asked = [
        kohort.entropy_l_diversity(1.5),
        kohort.recursive_diversity(3, 2),
        kohort.t_closeness(0.9),
        kohort.alpha(0.9),
        kohort.beta_likeness(5.0),
    ]
    release = kohort.anonymize(people, **{**roles, "sensitive": {"disease": asked}})
    assert set(release.manifest["requirement"]["sensitive"]["disease"]) == {
        "entropy_l",
        "recursive_cl",
        "t",
        "distance",
        "alpha",
        "beta",
    }
    with pytest.raises(TypeError, match="asked twice"):
        kohort.anonymize(people, **{**roles, "sensitive": {"disease": [kohort.l_diversity(2), kohort.l_diversity(3)]}})
    enhanced = kohort.anonymize(people, **{**roles, "sensitive": {"disease": kohort.enhanced_beta_likeness(5.0)}})
    assert enhanced.manifest["requirement"]["sensitive"]["disease"]["enhanced_beta"] == 5.0


def test_any_other_key_of_a_spec_can_be_set(people, roles):
    release = kohort.anonymize(people, **roles, algorithm="mondrian", order="input", settings={"mondrian": {"cuts": "relaxed"}})
    assert release.manifest["algorithm"] == "mondrian" and release.manifest["order"] == "input"


def test_how_a_file_is_read_can_be_said(tmp_path):
    (tmp_path / "x.csv").write_text("".join(f"{20 + n};{n},5\n" for n in range(10)))
    asked = {"k": 3, "quasi": ["column_1", "column_2"]}
    release = kohort.anonymize(tmp_path / "x.csv", **asked, read={"separator": ";", "decimal": ",", "header": False})
    assert release.k >= 3


def test_frames_stand_in_for_the_files_of_a_spec(tmp_path):
    patients = pd.read_csv("examples/clinic/patients.csv", dtype=str)
    spec = kohort.Spec.from_toml("examples/clinic/release.toml")
    by_file = spec.anonymize().to_pandas()
    by_frame = spec.anonymize(tables={"patients": patients}).table
    assert by_frame.astype(str).equals(by_file.astype(str))
    with pytest.raises(TypeError, match="it has patients"):
        spec.anonymize(tables={"nobody": patients})


def test_earlier_releases_need_a_register(people, roles, tmp_path):
    with pytest.raises(kohort.InputError, match="previous"):
        kohort.anonymize(people, **roles, previous=tmp_path / "first")


def wave(ages, **asked):
    """A survey of some people of a town that has one person of each age from 1 to 24."""
    survey = pd.DataFrame({"id": [f"p{age}" for age in ages], "age": ages, "answer": [["yes", "no"][n % 2] for n in range(len(ages))]})
    town = pd.DataFrame({"id": [f"p{age}" for age in range(1, 25)], "age": range(1, 25)})
    return kohort.anonymize(
        survey,
        k=3,
        algorithm="mondrian",
        person="id",
        identifiers="id",
        quasi="age",
        sensitive={"answer": kohort.l_diversity(2)},
        registers={"town": kohort.Register(town, key="id")},
        register={"release": "microdata"},
        name="survey",
        **asked,
    )


def ages_of_classes(release):
    """For each class the ages of the town that it can hold."""
    classes = []
    for label in release.tables["survey"]["age"].unique():
        low, high = kohort.ml.interval(label)
        classes.append(set(range(int(low), int(high) + 1)))
    return classes


def fewest_in_both(first, second):
    """The fewest people that a class of each release, read together, can be about."""
    return min(len(a & b) for a in ages_of_classes(first) for b in ages_of_classes(second) if a & b)


def test_a_release_is_safe_to_be_read_beside_an_earlier_one(tmp_path):
    first = wave(list(range(2, 25, 2)))
    first.write(tmp_path / "first")
    later = [3, 4, 5, 6, 9, 10, 11, 14, 15, 17, 18, 22]
    careless = wave(later)
    assert fewest_in_both(first, careless) < 3, "the two releases single nobody out: the case shows nothing"
    for previous in (tmp_path / "first", [str(tmp_path / "first")]):
        second = wave(later, previous=previous)
        assert fewest_in_both(first, second) >= 3
        assert second.manifest["previous"]["k"] >= 3 and len(second.manifest["previous"]["manifests"]) == 1
    second.write(tmp_path / "second")
    assert second.spec.verify(tmp_path / "second").met
    with pytest.raises(kohort.InputError, match="not named here"):
        wave(later, previous=tmp_path / "second")
