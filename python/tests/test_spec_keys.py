"""Every key of a spec can be said in Python under a name of its own, and what is said stands in the spec."""

import datetime
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest

import kohort
from kohort import _words
from kohort._spec import Asked

SCHEMA = kohort.schema()


def keys(definition):
    """The keys of a section of the schema, also those that it has in one of its forms only."""
    own = set(definition.get("properties", {}))
    forms = [form for word in ("oneOf", "anyOf", "allOf") for form in definition.get(word, [])]
    return own.union(*map(keys, forms))


def defined(name):
    return keys(SCHEMA["$defs"][name])


def names(made):
    return {field.name for field in fields(made)}


REQUIREMENTS = (
    kohort.l_diversity(2),
    kohort.p_sensitivity(2),
    kohort.entropy_l_diversity(2),
    kohort.recursive_diversity(3, 2),
    kohort.t_closeness(0.2),
    kohort.alpha(0.5),
    kohort.beta_likeness(1),
    kohort.enhanced_beta_likeness(1),
)
#: Keys of requirements, as functions of the package make them.
ASKED = {key for requirement in REQUIREMENTS for key in requirement.settings}


def test_every_key_at_the_top_is_a_parameter():
    assert keys(SCHEMA) - {"tables"} <= set(Asked.__annotations__)
    sections = {"mondrian": _words.Mondrian, "datafly": _words.Datafly, "full_domain": _words.FullDomain}
    for section, words in {**sections, "clustering": _words.Clustering, "register": _words.Registering}.items():
        assert keys(SCHEMA["properties"][section]) == set(words.__annotations__), section


def test_every_key_of_a_table_is_a_field():
    # A table has data in place of a file, and lists of columns in place of columns with roles.
    assert defined("table") - {"file", "columns"} <= names(kohort.Table) | set(_words.Read.__annotations__)
    assert set(_words.Read.__annotations__) <= defined("table")
    assert keys(SCHEMA["$defs"]["table"]["properties"]["parent"]) == {"table", "foreign_key"}
    roles = {"identifier": "identifiers", "key": "references", "pseudonym": "pseudonyms"}
    assert {roles.get(role, role) for role in SCHEMA["$defs"]["role"]["enum"]} <= names(kohort.Table)


def test_every_key_of_a_column_is_a_field_or_a_requirement():
    # A table says the role of a column, the table that a key refers to, and the file of the key of pseudonyms.
    assert defined("column") - {"role", "references", "key_file"} <= names(kohort.Column) | ASKED
    assert defined("requirements") == ASKED
    assert defined("bound") == set(kohort.quantile(0.5))


def test_every_key_of_a_hierarchy_is_made_by_a_function():
    made = (kohort.steps(5), kohort.mask(), kohort.dates("month"), kohort.hierarchy_file("a.csv", edges=True))
    assert defined("hierarchy") == {key for each in made for key in each._in_spec("a.csv")[0]}


def test_every_key_of_recipients_and_registers_is_a_field():
    assert defined("audience") == names(kohort.Audience)
    assert defined("coalition") == names(kohort.Coalition)
    assert defined("register_file") - {"file"} <= names(kohort.Register)


@pytest.mark.parametrize(
    ("section", "key", "words"),
    [
        ("table", "orphans", _words.Orphans),
        ("table", "childless", _words.Childless),
        ("column", "truncate", _words.Period),
        ("column", "type", _words.ValueType),
    ],
)
def test_the_words_of_a_key_are_those_of_the_schema(section, key, words):
    assert sorted(get_args(words)) == sorted(SCHEMA["$defs"][section]["properties"][key]["enum"])


def test_the_words_of_sections_are_those_of_the_schema():
    for section, words in (("mondrian", _words.Mondrian), ("clustering", _words.Clustering), ("register", _words.Registering)):
        for key, said in SCHEMA["properties"][section]["properties"].items():
            if "enum" in said:
                word = words.__annotations__[key].__forward_arg__
                assert sorted(get_args(eval(word, vars(_words)))) == sorted(said["enum"]), key
    assert sorted(get_args(_words.Steer)) == sorted(SCHEMA["properties"]["steer"]["enum"])


def test_what_is_said_of_one_table_stands_in_the_spec():
    spec = kohort.Spec(
        "people.csv", k=5, algorithm="mondrian", mondrian={"cuts": "relaxed"}, effort=3, max_suppressed=0.1, person="id",
        read={"separator": ";", "null": ["", "NA"], "header": True}, objective="target:cost", pseudonyms={"id": Path("keys/id.key")},
        quasi={"age": kohort.Column(top=90, bottom=18, weight=2.5), "birth": kohort.Column(truncate="month", top=datetime.date(2001, 1, 1))},
        sensitive={"cost": kohort.Column(requirements=kohort.p_sensitivity(2), round=100, top=kohort.quantile(0.99))},
        plain={"visit": kohort.Column(truncate="year", type=None), "ward": None},
    )  # fmt: skip
    said = tomllib.loads(spec.to_toml())
    assert said == {
        "k": 5, "algorithm": "mondrian", "mondrian": {"cuts": "relaxed"}, "effort": 3, "max_suppressed": 0.1, "objective": "target:cost",
        "tables": {
            "people": {
                "file": "people.csv", "person": "id", "separator": ";", "null": ["", "NA"], "header": True,
                "columns": {
                    "id": {"role": "pseudonym", "key_file": "keys/id.key"},
                    "age": {"role": "quasi", "top": 90, "bottom": 18, "weight": 2.5},
                    "birth": {"role": "quasi", "truncate": "month", "top": "2001-01-01"},
                    "cost": {"role": "sensitive", "p": 2, "round": 100, "top": {"quantile": 0.99}},
                    "visit": {"role": "plain", "truncate": "year"},
                    "ward": {"role": "plain"},
                },
            }
        },
    }  # fmt: skip


def test_what_is_said_of_many_tables_stands_in_the_spec():
    visits = kohort.Table("visit.csv", parent=("person", "id"), sensitive="code", orphans="drop", max_rows_left_out=0.2, read={"separator": ","})
    person = kohort.Table("person.csv", person="id", quasi="age", childless="keep")
    spec = kohort.Spec({"person": person, "visit": visits}, k=3, clustering={"pairing": "optimal"})
    said = tomllib.loads(spec.to_toml())
    assert said["clustering"] == {"pairing": "optimal"} and said["tables"]["person"]["childless"] == "keep"
    visit = said["tables"]["visit"]
    assert (visit["orphans"], visit["max_rows_left_out"], visit["separator"]) == ("drop", 0.2, ",")


def test_what_is_said_of_recipients_and_registers_stands_in_the_spec(tmp_path):
    all_of_them = kohort.Coalition(k=2, sensitive={"disease": kohort.l_diversity(2)})
    both = kohort.Coalition(["insurer", "hr"], k=3, person_k=False)
    audiences = {"insurer": "age", "hr": kohort.Audience(["job"], k=6)}
    asked = {"k": 4, "sensitive": "disease", "audiences": audiences, "steer": "common"}
    said = tomllib.loads(kohort.Spec("people.csv", collusion=all_of_them, **asked).to_toml())
    assert said["steer"] == "common" and said["collusion"] == {"k": 2, "sensitive": {"disease": {"l": 2}}}
    said = tomllib.loads(kohort.Spec("people.csv", collusion={"both": both}, **asked).to_toml())
    assert said["collusion"] == {"both": {"audiences": ["insurer", "hr"], "k": 3, "person_k": False}}

    register = kohort.Register("town.csv", key="no", previous=tmp_path / "town-2025.csv")
    said = tomllib.loads(
        kohort.Spec(
            "people.csv", k=4, person="id", quasi="age", registers={"town": register}, register={"method": "direct"},
            previous="2025/",
        ).to_toml()
    )  # fmt: skip
    assert said["registers"]["town"]["previous"] == [str(tmp_path / "town-2025.csv")]
    assert (said["register"], said["previous"]) == ({"method": "direct"}, ["2025/"])


def test_a_register_may_be_used_in_the_way_that_loses_less():
    register = {"registers": {"town": "town.csv"}, "register": {"method": "auto"}}
    said = tomllib.loads(kohort.Spec("people.csv", k=4, quasi="age", **register).to_toml())
    assert said["register"] == {"method": "auto"}


def test_pseudonyms_are_codes_of_a_key_that_only_its_owner_has(tmp_path):
    key = tmp_path / "pseudonyms.key"
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    frame = pd.DataFrame({"id": [f"CANARY{n}" for n in range(40)], "age": [20 + n % 10 for n in range(40)]})
    asked = {"k": 4, "quasi": "age", "pseudonyms": {"id": key}}
    release = kohort.anonymize(frame, **asked)
    codes = release.table["id"]
    assert codes.nunique() == 40 and not codes.astype(str).str.contains("CANARY").any()
    assert str(codes.dtype) == str(frame["id"].dtype)
    assert set(kohort.anonymize(frame, **asked).table["id"]) == set(codes)
    key.write_bytes(bytes(range(1, 33)))
    assert not set(kohort.anonymize(frame, **asked).table["id"]) & set(codes)
    key.chmod(0o644)
    with pytest.raises(kohort.InputError, match="others than its owner may use it"):
        kohort.anonymize(frame, **asked)
    with pytest.raises(TypeError, match="name the file of each key"):
        kohort.Spec(frame, k=4, quasi="age", pseudonyms="id")


def test_weights_and_objectives_decide_what_is_lost():
    frame = pd.DataFrame({"age": [n * 37 % 97 for n in range(400)], "wage": [n * 53 % 89 for n in range(400)]})

    def lost(**asked):
        release = kohort.anonymize(frame, k=10, **asked)
        return release.loss["columns"], release.manifest

    evenly, _ = lost(quasi=["age", "wage"])
    weighted, _ = lost(quasi={"age": kohort.Column(weight=20), "wage": None})
    assert weighted["age"] < evenly["age"]
    _, manifest = lost(quasi=["age", "wage"], objective="rank")
    assert "rank" in str(manifest)
    with pytest.raises(kohort.InputError, match="objective"):
        lost(quasi="age", plain="wage", objective="beauty")


def test_cells_are_changed_before_classes_are_made():
    frame = pd.DataFrame({"age": [20 + n % 80 for n in range(400)], "cost": [n * 7 % 1000 for n in range(400)], "day": "2024-03-17"})
    release = kohort.anonymize(
        frame, k=5, quasi={"age": kohort.Column(top=90)}, sensitive={"cost": kohort.Column(round=100)},
        plain={"day": kohort.Column(truncate="month")},
    )  # fmt: skip
    assert release.table["age"].astype(str).str.contains(">= 90").any()
    assert set(release.table["cost"].astype(int) % 100) == {0} and set(release.table["day"]) == {"2024-03-01"}
    with pytest.raises(TypeError, match="say more as kohort.Column"):
        kohort.Spec(frame, k=5, quasi="age", sensitive="cost", plain={"day": "month"})
