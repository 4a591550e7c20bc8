"""Releases of one table: what goes in comes out, verified, and as the command would write it."""

import collections

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kohort


def smallest_class(table, quasi):
    """The smallest class, counted by a loop that shares nothing with kohort."""
    columns = [table.column(name).to_pylist() for name in quasi]
    return min(collections.Counter(zip(*columns)).values())


def test_every_class_has_k_rows_and_l_values(people, roles):
    release = kohort.anonymize(people, **roles)
    table = release.to_arrow()
    assert table.column_names == ["age", "zip", "disease"]
    assert table.num_rows == 12
    assert smallest_class(table, ["age", "zip"]) == release.k >= 3
    values = collections.defaultdict(set)
    for row in table.to_pylist():
        values[row["age"], row["zip"]].add(row["disease"])
    assert min(map(len, values.values())) >= 2


def test_what_went_in_comes_out(people, roles):
    frame = people.to_pandas()
    for data, kind in [
        (people, pa.Table),
        (frame, pd.DataFrame),
        (pl.DataFrame(people), pl.DataFrame),
        (pl.DataFrame(people).lazy(), pl.DataFrame),
        (duckdb.from_arrow(people), duckdb.DuckDBPyRelation),
        (people.to_batches()[0], pa.Table),
        (people.to_reader(), pa.Table),
    ]:
        table = kohort.anonymize(data, **roles).table
        assert isinstance(table, kind), (type(data), type(table))


def test_every_source_gives_the_same_cells(people, roles, tmp_path):
    pq.write_table(people, tmp_path / "people.parquet")
    people.to_pandas().to_csv(tmp_path / "people.csv", index=False)
    with pa.OSFile(str(tmp_path / "people.arrow"), "wb") as file, pa.ipc.new_file(file, people.schema) as writer:
        writer.write_table(people)
    expected = kohort.anonymize(people, **roles).to_arrow().to_pylist()
    sources = [
        people.to_pandas(),
        pl.DataFrame(people),
        duckdb.from_arrow(people),
        tmp_path / "people.parquet",
        str(tmp_path / "people.csv"),
        tmp_path / "people.arrow",
    ]
    for data in sources:
        assert kohort.anonymize(data, **roles).to_arrow().to_pylist() == expected, type(data)


def test_a_release_goes_to_every_library(people, roles):
    release = kohort.anonymize(people, **roles)
    rows = release.to_arrow().to_pylist()
    assert release.to_pandas().to_dict("records") == rows
    assert release.to_polars().to_dicts() == rows
    assert pa.table(release).to_pylist() == rows
    assert release.to_csv().splitlines()[0] == "age,zip,disease"


def test_one_thread_and_two_give_the_same_bytes(people, roles):
    one, two = (kohort.anonymize(people, **roles, threads=n) for n in (1, 2))
    assert one.to_csv() == two.to_csv()
    with pytest.raises(kohort.InputError, match="threads=0"):
        kohort.anonymize(people, **roles, threads=0)


def test_a_written_release_is_verified_alone_and_against_the_frame(people, roles, tmp_path):
    release = kohort.anonymize(people, **roles)
    manifest = release.write(tmp_path / "out")
    assert manifest["verified"] and len(manifest["tables"][0]["sha256"]) == 64
    assert kohort.verify(tmp_path / "out").verdict == "verified"
    assert release.spec.verify(tmp_path / "out").verdict == "verified"
    other = people.set_column(1, "age", pa.array([n + 1 for n in range(12)]))
    with pytest.raises(kohort.NotMet, match="can't have come from the original"):
        kohort.Spec(other, **roles).verify(tmp_path / "out")


def test_a_release_is_not_overwritten(people, roles, tmp_path):
    release = kohort.anonymize(people, **roles)
    release.write(tmp_path / "out")
    with pytest.raises(kohort.InputError):
        release.write(tmp_path / "out")
    release.write(tmp_path / "out", force=True, format="csv")
    assert (tmp_path / "out" / "table.csv").exists()


def test_a_changed_release_is_not_verified(people, roles, tmp_path):
    kohort.anonymize(people, **roles).write(tmp_path / "out", format="csv")
    file = tmp_path / "out" / "table.csv"
    file.write_text(file.read_text().replace("flu", "gout", 1))
    with pytest.raises(kohort.NotMet):
        kohort.verify(tmp_path / "out")


def test_a_release_says_what_was_asked_reached_and_lost(people, roles):
    release = kohort.anonymize(people, **roles)
    assert release.manifest["requirement"]["k"] == 3
    assert 0 < release.loss["lm"] < 1 and set(release.loss["columns"]) == {"age", "zip"}
    assert release.risk["highest"]["before"] == 1 and release.risk["highest"]["after"] <= 1 / 3
    assert min(release.class_sizes) == release.k
    assert "k = 3 asked" in repr(release)


def test_an_estimate_of_everybody_counts_everybody(people, roles):
    release = kohort.anonymize(people, **{**roles, "quasi": ["age", "zip"]})
    found = kohort.estimate(release, "age between 0 and 200")
    assert found.of == 12 and found.count == pytest.approx(12)
    assert sum(found.sensitive["disease"].values()) == pytest.approx(12)
    some = kohort.estimate(release, "age >= 50")
    assert 0 < some.count < 12


def test_releases_are_read_together(people, roles, tmp_path):
    with_id = people.append_column("id", pa.array(range(12)))
    names = ["id", "age", "zip"]
    other = with_id.select(names)
    found = kohort.audit([with_id.select(names), other], audiences={"reader": ["age", "zip"]}, person="id", k=3)
    assert found.persons == 12 and not found.met
    assert found.audiences["reader"]["together"]["smallest"] == 1
    release = kohort.anonymize(people, **roles)
    alone = kohort.audit([release], audiences={"reader": ["age", "zip"]}, k=3)
    assert alone.met and alone.audiences["reader"]["together"]["smallest"] == release.k


def test_suggestions_are_the_same_for_a_frame_and_its_file(people, tmp_path):
    pq.write_table(people, tmp_path / "people.parquet")
    of_file = kohort.suggest(tmp_path / "people.parquet")
    of_frame = kohort.suggest(people.to_pandas(), name="people")
    assert of_file.columns == of_frame.columns
    assert {each.column: each.role for each in of_frame.columns}["disease"] == "sensitive"
    assert "# k =" in of_frame.to_toml()


def test_a_check_counts_as_a_loop_does(people):
    bands = people.set_column(1, "age", pa.array([age // 20 for age in people.column("age").to_pylist()]))
    found = kohort.check(bands, quasi=["age"], sensitive={"disease": kohort.l_diversity(4)}, k=2)
    assert found.k == smallest_class(bands, ["age"])
    assert found.classes == len(set(bands.column("age").to_pylist()))
    assert found.sensitive["disease"]["l"] <= 3
    assert not found.met and "disease" in found.unmet[0].message
    assert kohort.check(bands, quasi="age").met


def test_a_check_counts_persons_where_they_are_named():
    visits = pa.table({"id": [1, 1, 2, 3], "age": [5, 5, 5, 9]})
    assert kohort.check(visits, quasi="age").k == 1
    by_row = kohort.check(visits, quasi="age").class_sizes
    by_person = kohort.check(visits, quasi="age", person="id").class_sizes
    assert (by_row, by_person) == ({1: 1, 3: 1}, {1: 1, 2: 1})
