"""Writes town.csv and survey.csv, from a fixed seed."""

import random

random.seed(11)
postcodes = ["4051", "4052", "4053", "4054", "4055", "4056", "4057", "4058"]
people = []
for number in range(1001, 1401):
    born = random.randint(1935, 2004)
    postcode = random.choice(postcodes[:5] if random.random() < 0.7 else postcodes)
    people.append([number, born, postcode, random.choice("fm")])

with open("town.csv", "w") as town:
    town.write("number,born,postcode,sex\n")
    for number, born, postcode, sex in people:
        # Of some the year is not known.
        town.write(f"{number},{'' if number % 37 == 0 else born},{postcode},{sex}\n")

survey = [list(person) for person in random.sample(people, 60)]
# One has moved since, and two are not in the register.
survey[7][2] = "4058" if survey[7][2] != "4058" else "4051"
survey += [[9001, 1971, "4053", "f"], [9002, 1988, "4052", "m"]]
random.shuffle(survey)
answers = ["never", "never", "rarely", "rarely", "weekly", "daily"]
with open("survey.csv", "w") as file:
    file.write("person,born,postcode,sex,smokes\n")
    for person in survey:
        file.write(",".join(map(str, person)) + "," + random.choice(answers) + "\n")
