"""Trains a model on a release, and reports how much of its accuracy is kept.

    python train.py                 patients of examples/clinic: whose heart or vessels are ill
    python train.py adult.csv       UCI Adult, separated by ';': who earns more than 50,000 dollars

A model is trained on the persons of the private table, and another one on a release of the same persons. Both are asked about
other persons, whom neither has seen. Accuracy is the mean of the shares of right answers among those who have what is asked
for and those who don't, so guessing reaches 0.5. Needs pandas, pyarrow and scikit-learn.
"""

import sys

import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import OneHotEncoder

import kohort


def clinic():
    patients = pd.read_csv("examples/clinic/patients.csv", dtype=str)
    kinds = pd.read_csv("examples/clinic/hierarchies/diagnosis.csv", sep=";", header=None, index_col=0)[1]
    table = pd.DataFrame(
        {
            "age": 2026 - patients["birth"].str[:4].astype("int64"),
            "sex": patients["sex"],
            "occupation": patients["occupation"],
            "heart": patients["diagnosis"].map(kinds).eq("heart and vessels").map({True: "yes", False: "no"}),
        }
    )
    jobs = kohort.hierarchy_file("examples/clinic/hierarchies/occupation.csv")
    return table, {"age": None, "sex": None, "occupation": jobs}, "heart"


def adult(file):
    table = pd.read_csv(file, sep=";")
    quasi = {name: None for name in table.columns if name != "salary-class"}
    return table, quasi, "salary-class"


def matrix(features, encoder):
    numbers = features[["age", "age_width"]].reset_index(drop=True)
    words = features.drop(columns=["age", "age_width"])
    return pd.concat([numbers, pd.DataFrame(encoder.transform(words))], axis=1).to_numpy()


def accuracy(train, test, target):
    """Trains on one table of features, and tests on another."""
    words = [name for name in train.columns if name not in ("age", "age_width", target)]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(train[words])
    model = RandomForestClassifier(200, min_samples_leaf=10, class_weight="balanced", random_state=0)
    model.fit(matrix(train.drop(columns=target), encoder), train[target])
    return balanced_accuracy_score(test[target], model.predict(matrix(test.drop(columns=target), encoder)))


def main():
    table, quasi, target = adult(sys.argv[1]) if len(sys.argv) > 1 else clinic()
    shuffled = table.sample(frac=1, random_state=0).reset_index(drop=True)
    n_test = len(shuffled) // 4
    test, train = shuffled[:n_test].assign(age_width=0.0), shuffled[n_test:].reset_index(drop=True)

    private = accuracy(train.assign(age_width=0.0), test, target)
    print(f"{'':<24} accuracy")
    print(f"{'guessing':<24} {0.5:8.3f}")
    print(f"{'private table':<24} {private:8.3f}")
    for k in (5, 20):
        release = kohort.anonymize(train, k=k, quasi=quasi, sensitive={target: kohort.l_diversity(2)})
        features = kohort.ml.features(release, columns=["age"])
        reached = accuracy(features, test, target)
        kept = (reached - 0.5) / (private - 0.5)
        print(f"{f'release, k = {k}':<24} {reached:8.3f}   {100 * kept:.0f} % of the gain over guessing is kept")


if __name__ == "__main__":
    main()
