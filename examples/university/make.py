"""Writes the tables and hierarchies of this example. Nobody in them is real; the same seed gives the same bytes."""

import random
from pathlib import Path

HERE = Path(__file__).parent
N_STUDENTS = 300

# Side of the university -> field -> courses; each course has the books and projects of its field.
FIELDS = {
    "science": {
        "mathematics": ["algebra", "analysis", "statistics", "logic"],
        "physics": ["mechanics", "optics", "thermodynamics", "astronomy"],
        "computing": ["programming", "databases", "networks", "graphics"],
    },
    "humanities": {
        "history": ["antiquity", "middle ages", "modern times", "archives"],
        "languages": ["latin", "poetry", "translation", "phonetics"],
        "thought": ["ethics", "religion", "rhetoric", "metaphysics"],
    },
}
BOOKS_PER_COURSE = 3
PROJECT_KINDS = {"practical": ["experiment", "program", "field trip"], "written": ["essay", "review", "survey"]}
ADVISORS_PER_FIELD = 4


def write(name, lines):
    (HERE / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def main():
    chance = random.Random(2007)
    pick = lambda things: things[int(chance.random() * len(things))]
    between = lambda low, high: low + int(chance.random() * (high - low + 1))
    courses = [(c, f, s) for s, fields in FIELDS.items() for f, names in fields.items() for c in names]
    fields = sorted({(field, side) for _, field, side in courses})

    books = {c: [f"{c} {volume}" for volume in ("I", "II", "reader")[:BOOKS_PER_COURSE]] for c, _, _ in courses}
    advisors = {field: [f"{field} {1 + number}" for number in range(ADVISORS_PER_FIELD)] for field, _ in fields}

    student, takes, bought, advised, projects = [], [], [], [], []
    for number in range(1, N_STUDENTS + 1):
        sid = f"S{number}"
        field, side = pick(fields)
        student.append(f"{sid},{between(20, 40) / 10:.1f}")
        # Most courses are of one's own field, a few of one's side, one of anything.
        own = [c for c in courses if c[1] == field]
        near = [c for c in courses if c[2] == side]
        chosen = {}
        for pool in [own, own, near, courses][: between(3, 4)]:
            course = pick(pool)
            chosen[course[0]] = course
        for course in chosen:
            scid = f"T{len(takes) + 1}"
            takes.append(f"{scid},{sid},{course},{between(50, 100)}")
            for book in sorted({pick(books[course]) for _ in range(between(1, 2))}):
                bought.append(f"{scid},{book},{between(15, 90)}")
            if chance.random() < 0.4:
                kind = pick(sorted(PROJECT_KINDS))
                projects.append(f"{scid},{pick(PROJECT_KINDS[kind])},{between(50, 100)}")
        for advisor in sorted({pick(advisors[field]) for _ in range(between(1, 2))}):
            advised.append(f"{sid},{advisor},{between(1, 5)}")

    write("student.csv", ["sid,gpa"] + student)
    write("takes.csv", ["scid,sid,course,grade"] + takes)
    write("bought.csv", ["scid,book,price"] + bought)
    write("advised.csv", ["sid,advisor,evaluation"] + advised)
    write("projects.csv", ["scid,project,project_grade"] + projects)
    write("hierarchies/course.csv", [f"{c};{f};{s};*" for c, f, s in courses])
    write("hierarchies/book.csv", [f"{b};{c} book;{f} book;{s} book;*" for c, f, s in courses for b in books[c]])
    write("hierarchies/advisor.csv", [f"{a};in {f};in {s};*" for f, s in fields for a in advisors[f]])
    write("hierarchies/project.csv", [f"{p};{k};*" for k, names in PROJECT_KINDS.items() for p in names])


if __name__ == "__main__":
    main()
