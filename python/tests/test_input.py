"""Types survive, and whatever can't be released is refused by name."""

import datetime
import decimal
import threading

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kohort
from kohort import _sources

N = 40


def ages():
    return [20 + n % 10 for n in range(N)]


def released(frame, **asked):
    return kohort.anonymize(frame, k=4, quasi="age", **asked)


def test_types_of_pandas_survive():
    day = datetime.date(2026, 1, 1)
    frame = pd.DataFrame(
        {
            "age": ages(),
            "category": pd.Categorical(["low", "high"] * (N // 2), categories=["low", "middle", "high"], ordered=True),
            "nullable": pd.array([1, None] * (N // 2), dtype="Int64"),
            "flag": pd.array([True, None] * (N // 2), dtype="boolean"),
            "small": np.array([7] * N, dtype="int8"),
            "amount": [decimal.Decimal("1.50")] * N,
            "day": [day] * N,
            "moment": pd.Series(pd.to_datetime(["2026-03-01 12:00"] * N)).dt.tz_localize("Europe/Berlin"),
            "text": pd.array(["a", None] * (N // 2), dtype="string"),
            "number": [1.5, np.nan] * (N // 2),
        }
    )
    table = released(frame, plain=[name for name in frame.columns if name != "age"], accept_risks=True).table
    for name in ("nullable", "flag", "small", "moment", "text", "number"):
        assert table[name].dtype == frame[name].dtype, name
    assert table["nullable"].isna().sum() == N // 2 and table["nullable"].dropna().unique().tolist() == [1]
    assert table["category"].cat.ordered
    assert table["amount"].unique().tolist() == [decimal.Decimal("1.50")]
    assert table["day"].unique().tolist() == [day]
    assert table["moment"].iloc[0] == frame["moment"].iloc[0]


def test_a_category_that_nobody_has_is_not_released():
    categories = ["low", "CANARY", "high"]
    frame = pd.DataFrame({"age": ages(), "level": pd.Categorical(["low", "high"] * (N // 2), categories=categories)})
    table = released(frame, plain="level").table
    assert list(table["level"].cat.categories) == ["low", "high"]
    polars = pl.DataFrame({"age": ages(), "level": pl.Series(["low", "high"] * (N // 2), dtype=pl.Enum(categories))})
    release = released(polars, plain="level")
    assert release.table["level"].dtype == pl.Enum(["low", "high"])
    assert release.table["level"].cast(pl.String).unique().sort().to_list() == ["high", "low"]
    arrow = release.to_arrow().column("level").combine_chunks()
    assert "CANARY" not in str(getattr(arrow, "dictionary", ""))


def test_the_order_of_categories_survives():
    levels = ["low", "middle", "CANARY", "high"]
    texts = ["high", "low", "middle", "high"] * (N // 4)
    of_pandas = pd.DataFrame({"age": ages(), "level": pd.Categorical(texts, categories=levels, ordered=True)})
    of_polars = pl.DataFrame({"age": ages(), "level": pl.Series(texts, dtype=pl.Enum(levels))})
    ids = pa.array([levels.index(text) for text in texts], type=pa.int8())
    of_pyarrow = pa.table({"age": ages(), "level": pa.DictionaryArray.from_arrays(ids, pa.array(levels), ordered=True)})
    parts = pa.concat_tables([of_pyarrow.slice(0, 5), of_pyarrow.slice(5)])
    enumeration = "ENUM('low', 'middle', 'CANARY', 'high')"
    of_duckdb = duckdb.from_arrow(pa.table({"age": ages(), "level": texts})).project(f"age, level::{enumeration} AS level")

    def level(frame):
        return released(frame, plain="level").table

    assert list(level(of_pandas)["level"].cat.categories) == ["low", "middle", "high"]
    assert level(of_polars)["level"].dtype == pl.Enum(["low", "middle", "high"])
    for table in (of_pyarrow, parts):
        out = level(table).column("level")
        assert out.type == of_pyarrow["level"].type and out.chunk(0).dictionary.to_pylist() == ["low", "middle", "high"]
        assert sorted(out.to_pylist()) == sorted(texts)
    assert str(level(of_duckdb).types[1]) == "ENUM('low', 'middle', 'high')"
    assert sorted(level(of_duckdb).project("level::VARCHAR").fetchall()) == sorted((text,) for text in texts)


def test_columns_that_can_not_be_read_are_refused_by_name():
    for column in (pl.Series([object()] * N, dtype=pl.Object), pl.Series([2**70] * N, dtype=pl.Int128)):
        frame = pl.DataFrame({"age": ages(), "odd": column})
        with pytest.raises(kohort.InputError, match="column '?odd'?"):
            released(frame, plain="odd", accept_risks=True)
    with pytest.raises(kohort.InputError, match="column 'odd'"):
        released(pd.DataFrame({"age": ages(), "odd": np.array([1j] * N)}), plain="odd")
    for column in (pl.Series("age", ages()), pd.Series(ages(), name="age"), pa.chunked_array([ages()])):
        with pytest.raises(TypeError, match="give a table|use to_frame"):
            released(column)


def test_a_column_of_nulls_is_released():
    for frame in (pl.DataFrame({"age": ages(), "x": [None] * N}), pd.DataFrame({"age": ages(), "x": [None] * N}), pa.table({"age": ages(), "x": pa.nulls(N)})):
        assert released(frame, plain="x").to_arrow().column("x").null_count == N
        assert kohort.check(frame, quasi=["age", "x"]).k == 4


def test_objects_of_pandas_stay_objects():
    frame = pd.DataFrame({"age": ages(), "x": pd.Series(["a", None] * (N // 2), dtype=object)})
    table = released(frame, plain="x").table
    assert table["x"].dtype == object and sorted(map(str, table["x"])) == sorted(map(str, frame["x"]))


def test_types_of_polars_survive():
    moment = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.timezone.utc)
    frame = pl.DataFrame(
        {
            "age": ages(),
            "amount": pl.Series([decimal.Decimal("1.50")] * N, dtype=pl.Decimal(10, 2)),
            "day": [datetime.date(2026, 1, 1)] * N,
            "moment": pl.Series([moment] * N, dtype=pl.Datetime("us", "Europe/Berlin")),
            "text": ["a", None] * (N // 2),
            "small": pl.Series([7, None] * (N // 2), dtype=pl.Int8),
            "clock": [datetime.time(12, 30)] * N,
            "bytes": [b"x"] * N,
        }
    )
    table = released(frame, plain=[name for name in frame.columns if name != "age"], accept_risks=True).table
    for name in frame.columns[1:]:
        assert table[name].dtype == frame[name].dtype, name
    assert table["moment"].unique().to_list() == frame["moment"].unique().to_list()


def test_quasi_columns_of_every_type_are_generalized():
    day = datetime.date(2026, 1, 1)
    frame = pd.DataFrame(
        {
            "whole": pd.array(ages(), dtype="Int64"),
            "amount": [decimal.Decimal(n % 7) / 2 for n in range(N)],
            "day": [day + datetime.timedelta(days=n) for n in range(N)],
            "moment": pd.date_range("2026-01-01", periods=N, freq="h", tz="Europe/Berlin"),
            "level": pd.Categorical(["low", "high"] * (N // 2)),
            "flag": [True, False] * (N // 2),
        }
    )
    release = kohort.anonymize(frame, k=5, quasi=list(frame.columns))
    assert release.k >= 5
    assert kohort.check(release.table, quasi=list(frame.columns)).k == release.k


@pytest.mark.parametrize(
    ("column", "name"),
    [
        (pa.array([[1, 2]] * N), "nested"),
        (pa.array([{"x": 1}] * N), "nested"),
        (pa.array([[("x", 1)]] * N, type=pa.map_(pa.string(), pa.int64())), "nested"),
    ],
)
def test_nested_columns_are_refused_by_name(column, name):
    table = pa.table({"age": ages(), name: column})
    for asked in ({"plain": name}, {"sensitive": name}):
        with pytest.raises(kohort.InputError, match=f"'{name}'"):
            kohort.anonymize(table, k=4, quasi="age", **asked)
    with pytest.raises(kohort.InputError, match=f"'{name}'"):
        kohort.anonymize(table, k=4, quasi=["age", name])
    assert kohort.anonymize(table, k=4, quasi="age", drop=name).table.column_names == ["age"]


@pytest.mark.parametrize("nested", ["[1, 2]", "{'a': 1}", "MAP {'a': 1}"])
def test_nested_columns_of_duckdb_and_polars_are_refused_by_name(nested):
    relation = duckdb.sql(f"select 20 + i % 10 as age, {nested} as nested from range({N}) t(i)")
    for table in (relation, pl.DataFrame(relation.to_arrow_table())):
        with pytest.raises(kohort.InputError, match="column 'nested' holds"):
            released(table, plain="nested")


def test_types_of_duckdb_survive():
    kinds = {
        "decimal": "1.50::DECIMAL(10,2)",
        "day": "DATE '2026-01-01'",
        "moment": "TIMESTAMPTZ '2026-01-01 12:00:00+02'",
        "category": "CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END::ENUM('a', 'b')",
        "nullable": "CASE WHEN i % 2 = 0 THEN i % 4 END",
        "small": "7::UTINYINT",
        "clock": "TIME '12:30:00'",
    }
    columns = ", ".join(f"{sql} as {name}" for name, sql in kinds.items())
    relation = duckdb.sql(f"select 20 + i % 10 as age, {columns} from range({N}) t(i)")
    table = released(relation, plain=list(kinds), accept_risks=True).table
    assert dict(zip(table.columns[1:], map(str, table.types[1:]))) == dict(zip(relation.columns[1:], map(str, relation.types[1:])))
    cells, private = table.to_arrow_table(), relation.to_arrow_table()
    for name in kinds:
        assert sorted(cells[name].to_pylist(), key=str) == sorted(private[name].to_pylist(), key=str), name


def test_types_of_pyarrow_survive():
    kinds = {
        "category": pa.array(["a", None] * (N // 2)).dictionary_encode(),
        "decimal": pa.array([decimal.Decimal("1.50")] * N, type=pa.decimal128(10, 2)),
        "day": pa.array([datetime.date(2026, 1, 1)] * N),
        "moment": pa.array([datetime.datetime(2026, 1, 1)] * N, type=pa.timestamp("us", "Europe/Berlin")),
        "nullable": pa.array([7, None] * (N // 2), type=pa.uint8()),
    }
    table = released(pa.table({"age": ages(), **kinds}), plain=list(kinds), accept_risks=True).table
    for name, column in kinds.items():
        assert table.schema.field(name).type == column.type
        assert sorted(table.column(name).to_pylist(), key=str) == sorted(column.to_pylist(), key=str)


def test_arrow_data_crosses_without_being_copied():
    table = pa.table({"age": ages(), "x": pa.array(["a", None] * (N // 2), type=pa.large_string())})

    def addresses(table):
        chunks = [chunk for column in table.columns for chunk in column.chunks]
        return [buffer.address for chunk in chunks for buffer in chunk.buffers() if buffer is not None]

    # In and out again: the buffers are where they were.
    assert addresses(pa.table(kohort.ArrowTable.of(table))) == addresses(table)
    made = kohort.anonymize(table, k=4, quasi="age", plain="x")
    assert addresses(made.to_arrow()) == addresses(made.to_arrow())
    numbers = pd.DataFrame({"age": np.arange(N)})
    column = _sources.PandasColumns(numbers, "data").column(0).column(0)
    assert column.chunk(0).buffers()[1].address == numbers["age"].to_numpy().__array_interface__["data"][0]
    texts = pd.DataFrame({"x": pd.array(["a", None] * (N // 2), dtype="str")})
    column = _sources.PandasColumns(texts, "data").column(0)
    assert addresses(column) == addresses(pa.table({"x": texts["x"].array.__arrow_array__()}))


def test_an_empty_frame_is_refused(roles, people):
    for empty in (people.slice(0, 0), people.slice(0, 0).to_pandas(), pl.DataFrame(people.slice(0, 0))):
        with pytest.raises((kohort.InputError, kohort.RequirementUnreachable)):
            kohort.anonymize(empty, **roles)
        with pytest.raises(kohort.InputError):
            kohort.check(empty, quasi="age")
    for nothing in (pd.DataFrame(), pl.DataFrame(), pa.table({})):
        with pytest.raises(kohort.InputError):
            kohort.check(nothing, quasi="age")


def test_doubled_names_are_refused():
    frame = pd.DataFrame([[1, 2, 3]] * N, columns=["age", "x", "x"])
    with pytest.raises(kohort.InputError, match="'x'"):
        released(frame, plain="x")
    table = pa.Table.from_arrays([pa.array(ages())] * 3, names=["age", "x", "x"])
    with pytest.raises(kohort.InputError, match="same name: column 2, column 3"):
        released(table, plain="x")


def test_names_that_are_not_text_are_refused():
    frame = pd.DataFrame({"age": ages(), 7: ages(), ("a", "b"): ages()})
    with pytest.raises(kohort.InputError, match="not text") as caught:
        released(frame)
    assert "7" in str(caught.value)
    with pytest.raises(TypeError, match="column names are text"):
        kohort.anonymize(frame[["age"]], k=4, quasi=[3])


def test_an_index_with_a_name_is_a_column_and_another_is_none():
    frame = pd.DataFrame({"age": ages()}, index=pd.Index(range(1000, 1000 + N), name="id"))
    with pytest.raises(kohort.InputError, match="'id'"):
        released(frame)
    assert list(released(frame, person="id").table.columns) == ["age"]
    unnamed = pd.DataFrame({"age": ages()}, index=[f"CANARY{n}" for n in range(N)])
    table = released(unnamed).table
    assert list(table.columns) == ["age"] and "CANARY" not in str(table.index.tolist())
    both = pd.DataFrame({"age": ages()}, index=pd.Index(ages(), name="age"))
    with pytest.raises(kohort.InputError, match="an index and a column"):
        released(both)


def test_nan_beside_null():
    numbers = [1.0, float("nan"), None, 2.0] * (N // 4)
    for frame in (pa.table({"age": ages(), "x": pa.array(numbers)}), pl.DataFrame({"age": ages(), "x": numbers})):
        table = released(frame, plain="x").to_arrow()
        values = table.column("x").to_pylist()
        assert sum(value is None for value in values) == N // 4
        assert sum(value is not None and value != value for value in values) == N // 4
    # pandas has one kind of missing value in a column of floats.
    table = released(pd.DataFrame({"age": ages(), "x": numbers}), plain="x").table
    assert table["x"].isna().sum() == N // 2
    # A value that is no number has no place in a range, and a null has.
    with pytest.raises(kohort.InputError, match="'x'.*rows 2, 6, 10"):
        kohort.anonymize(pa.table({"age": ages(), "x": pa.array(numbers)}), k=4, quasi=["age", "x"])
    filled = pl.DataFrame({"age": ages(), "x": numbers}).with_columns(pl.col("x").fill_nan(None))
    assert kohort.anonymize(filled, k=4, quasi=["age", "x"]).k >= 4
    objects = pd.DataFrame({"age": ages(), "x": pd.Series(["a", None, float("nan"), "b"] * (N // 4), dtype=object)})
    assert released(objects, plain="x").table["x"].isna().sum() == N // 2


def test_every_kind_of_arrow_text_is_read():
    texts = ["a", None] * (N // 2)
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        table = pa.table({"age": ages(), "x": pa.array(texts, type=kind)})
        out = released(table, plain="x").table
        assert out.column("x").null_count == N // 2
        assert out.schema.field("x").type == kind
        assert kohort.anonymize(table, k=4, quasi=["age", "x"]).k >= 4


def test_texts_beyond_31_bits_are_refused_by_name():
    # One chunk of 1 MB that stands in the table 2,200 times.
    chunk = pa.array(["x" * 1_000_000])
    table = pa.table({"age": [20 + n % 10 for n in range(2200)], "note": pa.chunked_array([chunk] * 2200)})
    with pytest.raises(kohort.InputError, match="2200000000 bytes") as caught:
        released(table, plain="note")
    assert "'note'" in str(caught.value)
    assert released(table, drop="note").k >= 4


def test_texts_that_pandas_makes_too_large_are_widened(monkeypatch):
    monkeypatch.setattr(_sources, "_MOST_BYTES_OF_STRING", 100)
    for dtype, kind in ((object, pa.large_string()), ("string[python]", pa.large_string()), (pd.ArrowDtype(pa.string()), pa.large_string())):
        frame = pd.DataFrame({"age": ages(), "note": pd.Series([f"note {n}" for n in range(N)], dtype=dtype)})
        release = released(frame, plain="note", accept_risks=True)
        assert release.to_arrow().schema.field("note").type == kind
        assert sorted(release.table["note"]) == sorted(frame["note"])
    octets = pd.DataFrame({"age": ages(), "octets": pd.Series([b"octets"] * N, dtype=object)})
    assert released(octets, plain="octets").to_arrow().schema.field("octets").type == pa.large_binary()


@pytest.mark.parametrize(
    "values",
    [
        ["a", None] * 20,
        [None] * 20 + [1] * 20,
        [1] * 20 + [2.5] * 20,
        [decimal.Decimal("1.5")] * 20 + [decimal.Decimal("1234567.125"), None] * 10,
        [decimal.Decimal("1e30")] * 20 + [decimal.Decimal("0.0000000001")] * 20,
        [datetime.date(2026, 1, 1)] * 20 + [None] * 20,
        [None] * N,
        [True, None] * 20,
    ],
    ids=str,
)
def test_pythons_objects_are_converted_in_pieces_as_they_would_be_as_a_whole(values, monkeypatch):
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    whole = _sources.PandasColumns(frame, "data").column(0).column(0)
    monkeypatch.setattr(_sources, "_ROWS_OF_OBJECTS", 7)
    pieces = _sources.PandasColumns(frame, "data").column(0).column(0)
    assert pieces.type == whole.type and pieces.to_pylist() == whole.to_pylist()


def test_many_objects_are_never_converted_at_once(monkeypatch):
    """Ctrl-C waits until a conversion is done."""
    monkeypatch.setattr(_sources, "_ROWS_OF_OBJECTS", 7)
    columns = _sources.PandasColumns(pd.DataFrame({"x": pd.Series([decimal.Decimal(1)] * N, dtype=object)}), "data")
    n_rows = []

    class Noted:
        def __getattr__(self, name):
            return getattr(pa, name)

        def array(self, values, **options):
            n_rows.append(len(values))
            return pa.array(values, **options)

    columns._pyarrow = Noted()
    assert columns.column(0).num_rows == N and max(n_rows) == 7 and sum(n_rows) == N
    with pytest.raises(kohort.InputError, match="several types"):
        mixed = pd.DataFrame({"age": ages(), "x": pd.Series([1] * 20 + ["CANARY"] * 20, dtype=object)})
        released(mixed, plain="x")


def test_chunks_and_slices_are_read_as_one_table():
    whole = pa.table({"age": ages(), "x": ["a", "b"] * (N // 2)})
    parts = pa.concat_tables([whole.slice(0, 7), whole.slice(7, 0), whole.slice(7)])
    assert parts.column("age").num_chunks > 1
    assert released(parts, plain="x").to_csv() == released(whole, plain="x").to_csv()


def test_a_frame_of_pandas_is_converted_column_by_column(people, roles, monkeypatch):
    asked = []
    column = _sources.PandasColumns.column

    def noted(self, position):
        asked.append(self.names[position])
        return column(self, position)

    def refused(self):
        raise AssertionError("the frame was converted as a whole")

    monkeypatch.setattr(_sources.PandasColumns, "column", noted)
    monkeypatch.setattr(_sources.PandasColumns, "table", refused)
    release = kohort.anonymize(people.to_pandas(), **roles)
    assert sorted(asked) == sorted(people.column_names)
    assert release.to_arrow().to_pylist() == kohort.anonymize(people, **roles).to_arrow().to_pylist()


def test_every_column_with_values_of_several_types_is_named():
    mixed = [1, "x"] * (N // 2)
    frame = pd.DataFrame({"age": ages(), "a": mixed, "b": mixed, "c": mixed})
    with pytest.raises(kohort.InputError) as caught:
        released(frame, plain=["a", "b"], sensitive="c")
    fault = "holds values of several types, or of a type that Arrow lacks"
    assert [report.message for report in caught.value.reports] == [f"table: column '{name}' {fault}" for name in "abc"]
    with pytest.raises(kohort.InputError, match=f"column 'a' {fault}"):
        released(frame[["age", "a"]], drop="a")
    with pytest.raises(kohort.InputError, match="column 'a', 'b', 'c' holds"):
        kohort.check(frame, quasi="age")


def test_nested_columns_of_pandas_are_refused_by_name():
    frame = pd.DataFrame({"age": ages(), "nested": [[1, 2]] * N})
    with pytest.raises(kohort.InputError, match="column 'nested' holds List"):
        released(frame, plain="nested")
    assert list(released(frame, drop="nested").table.columns) == ["age"]


def test_an_interrupt_while_a_column_is_converted_ends_the_call(people, roles, monkeypatch):
    def interrupted(self, position):
        raise KeyboardInterrupt

    monkeypatch.setattr(_sources.PandasColumns, "column", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kohort.anonymize(people.to_pandas(), **roles)


def test_a_frame_is_read_when_the_release_is_made():
    frame = pd.DataFrame({"age": ages()})
    spec = kohort.Spec(frame, k=4, quasi="age")
    frame["age"] += 100
    labels = spec.anonymize().table["age"]
    assert min(kohort.ml.interval(label)[0] for label in labels) >= 120


def test_a_register_of_pandas_has_the_digest_of_its_arrow_table():
    register = pa.table({"no": list(range(N)), "age": ages()})
    private = pa.table({"no": list(range(0, N, 2)), "age": ages()[::2], "x": ["a", "b"] * (N // 4)})
    asked = {"k": 4, "person": "no", "quasi": "age", "sensitive": "x"}
    digests = [
        kohort.anonymize(private, **asked, registers={"r": kohort.Register(given, key="no")}).manifest["registers"][0]["sha256"]
        for given in (register, register.to_pandas())
    ]
    assert digests[0] == digests[1]


def test_a_frame_that_is_changed_during_the_call_does_no_harm():
    n = 200_000
    frame = pd.DataFrame({"age": np.arange(n) % 90, "x": np.arange(n) % 7})
    stop = threading.Event()

    def change():
        while not stop.is_set():
            frame.loc[: n // 2, "age"] = np.random.default_rng(1).integers(0, 90, n // 2 + 1)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        release = kohort.anonymize(frame, k=5, quasi=["age", "x"], algorithm="mondrian")
    finally:
        stop.set()
        thread.join()
    assert release.manifest["persons"]["out"] == n
    assert kohort.check(release.table, quasi=["age", "x"]).k == release.k >= 5
