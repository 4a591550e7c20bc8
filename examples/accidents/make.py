"""Writes the accidents and hierarchies of this example. Nobody in them is real; the same seed gives the same bytes."""

import csv
import pathlib
import random

HERE = pathlib.Path(__file__).parent
N_ACCIDENTS = 1000

JOBS = {
    "Medical": ["Dentist", "Family doctor", "Nurse", "Pharmacist", "Surgeon"],
    "Finance": ["Banker", "Mortgage broker", "Accountant", "Insurance agent", "Tax adviser"],
    "Building": ["Carpenter", "Electrician", "Plumber", "Roofer", "Painter"],
    "Teaching": ["Primary teacher", "Music teacher", "Lecturer", "Driving instructor", "Nursery teacher"],
}
ABOVE = {"Medical": "Services", "Finance": "Services", "Teaching": "Services", "Building": "Crafts"}
COLOURS = ["Red", "White", "Black", "Green", "Blue", "Silver"]
BODIES = {"Truck": 2, "Van": 2, "Sedan": 6, "Hatchback": 5, "Estate": 3}
TOWNS = ["31043", "31044", "31046", "31250"]


def accident(number, chance):
    job = chance.choice([job for jobs in JOBS.values() for job in jobs])
    bodies = dict(BODIES, Truck=6, Van=8) if job in JOBS["Building"] else BODIES
    body = chance.choices(list(bodies), list(bodies.values()))[0]
    age = min(79, max(18, round(chance.gauss(41, 13))))
    faulty = "yes" if chance.random() < (0.55 if age < 26 else 0.38) else "no"
    return [f"D{number:04}", job, age, f"{chance.choice(COLOURS)} {body}", chance.choice(TOWNS), faulty]


def write(name, rows, separator=","):
    with open(HERE / name, "w", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)


def main():
    chance = random.Random(31043)
    header = ["driver", "occupation", "age", "vehicle", "postcode", "faulty"]
    write("accidents.csv", [header] + [accident(number + 1, chance) for number in range(N_ACCIDENTS)])
    jobs = [[job, group, ABOVE[group], "*"] for group, jobs in JOBS.items() for job in jobs]
    write("hierarchies/occupation.csv", jobs, ";")
    vehicles = [[f"{colour} {body}", body, "*"] for body in BODIES for colour in COLOURS]
    write("hierarchies/vehicle.csv", vehicles, ";")


if __name__ == "__main__":
    main()
