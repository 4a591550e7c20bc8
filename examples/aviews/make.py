"""Writes the patients, their choices and the DGHs of this example. Nobody in them is real; the same seed gives the same
bytes."""

import csv
import pathlib
import random

HERE = pathlib.Path(__file__).parent
N_PATIENTS = 400

DIAGNOSES = {
    "stomach": ["ulcer", "indigestion", "gastritis"],
    "lung": ["pneumonia", "asthma", "bronchitis"],
    "heart": ["angina", "heart failure", "high blood pressure"],
    "virus": ["influenza", "measles", "shingles"],
}
STREETS = ["88512", "88513", "88540", "88541", "89321", "89344", "89346", "90210"]
WARDS = ["north", "south", "day clinic"]
LAST_DAY = "2099-12-31"


def patient(number, chance):
    birth = min(2010, max(1930, round(chance.gauss(1972, 19))))
    group = "heart" if birth < 1960 and chance.random() < 0.5 else chance.choice(list(DIAGNOSES))
    diagnosis = chance.choice(DIAGNOSES[group])
    return [f"P{number:03}", birth, chance.choice(STREETS), chance.choice(["f", "m"]), chance.choice(WARDS), diagnosis]


def choices(chance):
    """Everybody's choice, then those of the few who chose otherwise."""
    yield ["*", "treatment", "nurse", 3, 0, "T", "T", LAST_DAY]
    yield ["*", "research", "lab", 3, 1, "T", "T", LAST_DAY]
    for number in sorted(chance.sample(range(1, N_PATIENTS + 1), 30)):
        name = f"P{number:03}"
        kind = chance.choice(["careful", "careful", "open", "no research", "no postcode", "over"])
        if kind == "careful":
            yield [name, "treatment", "nurse", 3, 0, "T", "T", LAST_DAY]
            yield [name, "research", "lab", 8, 2, "T", "T", LAST_DAY]
        elif kind == "open":
            yield [name, "treatment", "nurse", 0, 0, "T", "T", LAST_DAY]
            yield [name, "research", "lab", 0, 0, "T", "T", LAST_DAY]
        elif kind == "no research":
            yield [name, "research", "lab", 3, 0, "T", "F", LAST_DAY]
        elif kind == "no postcode":
            yield [name, "treatment", "nurse", 3, 0, "F", "T", LAST_DAY]
        else:
            yield [name, "research", "lab", 3, 1, "T", "T", "2020-12-31"]


def write(name, rows, separator=","):
    with open(HERE / name, "w", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)


def main():
    chance = random.Random(88512)
    patients = [patient(number + 1, chance) for number in range(N_PATIENTS)]
    write("patients.csv", [["patient", "birth", "zip", "sex", "ward", "diagnosis"]] + patients)
    header = ["patient", "purpose", "recipient", "k", "sa_level", "zip_op", "diagnosis_op", "diagnosis_until"]
    write("choices.csv", [header] + list(choices(chance)))
    diagnoses = [[name, f"{group} disease", "any disease"] for group, names in DIAGNOSES.items() for name in names]
    write("hierarchies/diagnosis.csv", diagnoses, ";")
    streets = [[street, street[:3] + "**", street[:2] + "***", "*****"] for street in STREETS]
    write("hierarchies/zip.csv", streets, ";")


if __name__ == "__main__":
    main()
