"""Released tables as features of models."""

import runpy
import sys

import pandas as pd
import pyarrow as pa
import pytest

import kohort


def grown(n=60):
    return pa.table({"age": [20 + i % 30 for i in range(n)], "weight": [50 + i % 17 + 0.5 for i in range(n)], "sex": ["m", "f"] * (n // 2)})


def test_bounds_are_typed_columns():
    release = kohort.anonymize(grown(), k=5, quasi=["age", "weight", "sex"], cells="bounds")
    table = release.table
    assert table.column_names == ["age_lo", "age_hi", "weight_lo", "weight_hi", "sex"]
    assert table.schema.field("age_lo").type == pa.int64() and table.schema.field("weight_hi").type == pa.float64()
    labels = kohort.anonymize(grown(), k=5, quasi=["age", "weight", "sex"]).to_arrow()
    low, high = kohort.ml.intervals(labels.column("age").to_pylist())
    assert sorted(low, key=str) == sorted(map(float, table.column("age_lo").to_pylist()), key=str)
    assert sorted(high, key=str) == sorted(map(float, table.column("age_hi").to_pylist()), key=str)


def test_midpoints_are_the_middle_of_bounds(tmp_path):
    asked = {"k": 5, "quasi": ["age", "weight", "sex"]}
    bounds = kohort.anonymize(grown(), **asked, cells="bounds").to_pandas()
    release = kohort.anonymize(grown(), **asked, cells="midpoint")
    table = release.to_pandas()
    assert list(table.columns) == ["age", "weight", "sex"]
    for name in ("age", "weight"):
        middle = (bounds[f"{name}_lo"].astype("float64") + bounds[f"{name}_hi"]) / 2
        assert table[name].dtype == "float64" and table[name].equals(middle)
    # A written release has bounds, because readers are told what a cell stands for.
    manifest = release.write(tmp_path / "out")
    assert "age_lo" in manifest["tables"][0]["columns"]
    assert kohort.verify(tmp_path / "out").verdict == "verified"


def test_midpoints_of_times_are_times():
    days = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=40).date, "at": pd.date_range("2026-01-01", periods=40, freq="h")})
    table = kohort.anonymize(days, k=4, quasi=["day", "at"], cells="midpoint").to_arrow()
    assert table.schema.field("day").type == pa.date32() and pa.types.is_timestamp(table.schema.field("at").type)
    assert table.column("day").null_count == 0


def test_features_are_numbers():
    release = kohort.anonymize(grown(), k=5, quasi=["age", "weight", "sex"])
    features = kohort.ml.features(release)
    assert list(features.columns) == ["age", "age_width", "weight", "weight_width", "sex"]
    assert features[["age", "age_width", "weight", "weight_width"]].notna().all().all()
    by_bounds = kohort.ml.features(kohort.anonymize(grown(), k=5, quasi=["age", "weight", "sex"], cells="bounds").to_polars())
    assert sorted(by_bounds["age"]) == sorted(features["age"])


def test_a_cell_that_could_be_anything_covers_the_column():
    frame = kohort.ml.features(pd.DataFrame({"age": ["[20,29]", "*", "40"], "job": ["cook", "*", "judge"]}))
    assert frame["age"].tolist() == [24.5, 30.0, 40.0] and frame["age_width"].tolist() == [9.0, 20.0, 0.0]
    assert frame["job"].tolist() == ["cook", "*", "judge"]
    with pytest.raises(ValueError, match="no interval column") as caught:
        kohort.ml.features(pd.DataFrame({"job": ["CANARY"]}), columns=["job"])
    assert "CANARY" not in str(caught.value)


def test_other_forms_of_cells_are_refused(people, roles):
    with pytest.raises(kohort.InputError, match="no such form"):
        kohort.anonymize(people, **roles, cells="median")


def test_the_example_reports_the_accuracy_that_is_kept(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train.py"])
    runpy.run_path("python/examples/train.py", run_name="__main__")
    printed = capsys.readouterr().out
    assert "private table" in printed and "release, k = 5" in printed and "kept" in printed
