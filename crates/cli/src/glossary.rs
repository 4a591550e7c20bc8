//! The words of `kohort explain`: one short text each.

/// A word and what it means.
pub(crate) struct Entry {
    /// The word, and after it other names for it.
    pub(crate) names: &'static [&'static str],
    /// What the word means.
    pub(crate) text: &'static str,
}

/// All words, in the order in which a newcomer meets them.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["k", "k-anonymity"],
        text: "Everybody in the release looks the same, on all quasi columns, as at least k-1 others.\n\
               Somebody who knows a person's values in all of these columns finds k candidates, so the risk is\n\
               1/k at most.\n\
               There is no default: 5 is common, health agencies ask for 11 or 12.",
    },
    Entry {
        names: &["person"],
        text: "Who is protected. k counts persons, never rows: a person may have several rows and counts once.\n\
               The column that names the person is given by `person`; without it each row is a person.",
    },
    Entry {
        names: &["role"],
        text: "What a column is for: identifier, quasi, sensitive, key, plain, pseudonym, person_k or drop.\n\
               There is no default: a column without a role is an error, so that none is released by oversight.",
    },
    Entry {
        names: &["identifier"],
        text: "A column that names a person outright: name, e-mail, insurance number. Never released.",
    },
    Entry {
        names: &["quasi", "quasi-identifier"],
        text: "A column that others could know about a person: birth date, postcode, sex, occupation.\n\
               Harmless one by one, together they single people out. Generalized until k persons look the same.\n\
               In doubt between plain and quasi: quasi.",
    },
    Entry {
        names: &["sensitive"],
        text: "A column that others want to learn about a person: diagnosis, salary. Released unchanged.\n\
               k alone does not protect it: if all k persons share one value, an attacker knows it. So give the\n\
               column a requirement: l, t, alpha or beta.",
    },
    Entry {
        names: &["key"],
        text: "A column that joins tables or names the person. Renumbered in the released order, and released\n\
               only if another table points to it. A key that joins its table with no other must say in\n\
               `references` which table's key it holds, or it is refused.",
    },
    Entry { names: &["plain"], text: "A column that helps nobody to find a person. Released unchanged." },
    Entry {
        names: &["pseudonym"],
        text: "A column that is released as codes, one for each person, that only the owner of a key file can compute.\n\
               Releases with pseudonyms of one key can be joined person by person: take a key for each recipient and\n\
               release.",
    },
    Entry {
        names: &["person_k"],
        text: "A column with each person's own k. For each person, the larger of own k and the release's k\n\
               counts. Never released.",
    },
    Entry { names: &["drop"], text: "A column that is not released." },
    Entry {
        names: &["class", "equivalence class"],
        text: "Persons who look the same on all quasi columns. Every requirement is about classes.",
    },
    Entry {
        names: &["requirement"],
        text: "What every class must satisfy: k, a person's own k, l-diversity, t-closeness, alpha, beta.\n\
               Several may be asked at once. If they can't be reached, nothing is written.",
    },
    Entry {
        names: &["l", "p", "l-diversity", "distinct l-diversity", "p-sensitivity"],
        text: "Every class shows at least l different values of the sensitive column, so that a person's\n\
               class does not tell the person's value. Written l = 3, or --sensitive disease:l=3. Others call it p-sensitivity,\n\
               so p = 3 is the same.",
    },
    Entry {
        names: &["entropy_l", "entropy l-diversity"],
        text: "Stronger than l: the values of a class are spread as evenly as entropy_l equally frequent ones\n\
               would be (their entropy is at least ln entropy_l).",
    },
    Entry {
        names: &["recursive_cl", "recursive l-diversity"],
        text: "recursive_cl = [c, l]: the most frequent value of a class is less frequent than c times all values\n\
               from the l-th most frequent on together. On the command line: recursive_cl=3:2.",
    },
    Entry {
        names: &["t", "t-closeness"],
        text: "The values of every class are distributed much like those of the whole release: the distance\n\
               between the two is at most t, from 0 (the same) to 1 (nothing in common).\n\
               `distance` says how far two values are apart: equal (1 if they differ), ordered (by rank) or\n\
               hierarchical (by the height of their common ancestor).",
    },
    Entry {
        names: &["alpha", "(alpha,k)-anonymity"],
        text: "No sensitive value is held by more than this share of a class's persons.",
    },
    Entry {
        names: &["beta", "beta-likeness"],
        text: "No sensitive value is much more frequent in a class than in the whole release: with the shares\n\
               q in the class and p in the release, (q - p) / p is at most beta.",
    },
    Entry {
        names: &["enhanced_beta"],
        text: "beta-likeness that also protects frequent values: (q - p) / p is at most beta and at most -ln p.",
    },
    Entry {
        names: &["audience", "audiences"],
        text: "A recipient of the release, with the quasi columns it may know and a k of its own. All audiences receive\n\
               the same table, because two different tables of the same persons could be combined, see `kohort audit`.\n\
               Written [audiences.insurer] with quasi = [\"age\", \"vehicle\"].",
    },
    Entry {
        names: &["butterfly", "body", "wing"],
        text: "Rows that look the same in the body, which are the columns that several audiences may know, and fall\n\
               into classes of their own in the wing of each audience, which are the columns that only it may know.\n\
               Every audience sees classes of k persons, and its columns are not generalized because of columns that\n\
               only others know.",
    },
    Entry {
        names: &["collusion"],
        text: "Audiences that combine their tables or their knowledge. Combining tables gains nothing, because all have\n\
               the same one. Audiences that combine what they know about people see smaller classes, but of at least\n\
               `k` persons if [collusion] asks for it.",
    },
    Entry {
        names: &["audit"],
        text: "To read several releases of the same persons together. What they say about each person is intersected, and\n\
               the persons who still look the same are counted. `kohort audit` does this for any files.",
    },
    Entry {
        names: &["register", "registers", "k-join-anonymity"],
        text: "A public database of the population that the private table is of. An attacker looks people up in it, so\n\
               everybody in it makes the crowd larger: a class needs k persons of table and register together, so\n\
               less is generalized. Written [registers.town] with file and key.",
    },
    Entry {
        names: &["group", "sensitive group", "sensitive_group"],
        text: "With a register: private persons whose sensitive values are listed together, so that nobody can tell\n\
               which value is whose. k, l, t and the rest hold in every group.",
    },
    Entry {
        names: &["presence", "delta_presence", "delta-presence"],
        text: "Whether somebody is in the private table at all. With a register, a class mixes private persons with\n\
               others; delta_presence = [0.0, 0.3] bounds the share of private persons in every class.",
    },
    Entry {
        names: &["estimate"],
        text: "What a reader can expect of the private rows, if these are spread evenly over everything that the released\n\
               cells can stand for. `kohort estimate` tells how many rows match conditions, and their sensitive values.",
    },
    Entry {
        names: &["hierarchy", "dgh"],
        text: "A tree over a column's values; its root stands for everything. A class shows the lowest node\n\
               that covers all its members. Read from a file (one row per value: value;parent;...;root) or made\n\
               by rule: steps, mask, dates, flat. Try `kohort hierarchy --help`.",
    },
    Entry {
        names: &["generalize", "recoding"],
        text: "To show something wider than the value that still covers it, such as a range or a node of the\n\
               hierarchy. Nothing in a release is made up.",
    },
    Entry {
        names: &["suppress", "max_suppressed", "leftovers"],
        text: "To leave a person out, and to count that. max_suppressed says which share may be left out, 0 by\n\
               default. Persons who fit into no class join the nearest (leftovers = \"merge\") or are left out\n\
               (\"suppress\").",
    },
    Entry {
        names: &["mondrian", "partitioner"],
        text: "How persons become classes: all of them are cut in two at the median of one column, and so on,\n\
               as long as both halves satisfy the requirement.",
    },
    Entry {
        names: &["loss", "lm", "ncp"],
        text: "How much less the release says than the input: 0 is nothing lost, 1 is everything. The loss of a column\n\
               is the mean over its cells of the share that a cell covers: the width of its range over that of the whole\n\
               column, or the leaves below its node over all leaves.",
    },
    Entry {
        names: &["risk"],
        text: "The chance that an attacker who knows all of a person's quasi values picks the right row: one\n\
               over the size of the class. Highest: in the smallest class. Average: over all persons.",
    },
    Entry {
        names: &["prosecutor", "prosecutor risk"],
        text: "An attacker who looks for one person, and knows that this person is in the private table. The risk is one\n\
               over the persons of the table in the person's class, so k bounds it by 1/k.",
    },
    Entry {
        names: &["journalist", "journalist risk"],
        text: "An attacker who looks for anybody, and does not know who is in the private table. The risk is one over the\n\
               persons of the whole population who fit the class. Without a register it is at most the prosecutor's;\n\
               `kohort check --population` estimates it by models.",
    },
    Entry {
        names: &["marketer", "marketer risk"],
        text: "An attacker who links everybody at once with a list, and does not mind mistakes. The risk is the share of\n\
               persons who are linked rightly on average: the number of classes over the number of persons.",
    },
    Entry {
        names: &["population", "poisson", "zayatz", "snb", "slide negative binomial", "pitman"],
        text: "Everybody who could have been in the private table, which is then a sample of it. Who is unique in the sample\n\
               may look like others who were not sampled. Four models estimate how many are unique in the population:\n\
               Poisson, Zayatz, slide negative binomial (SNB) and Pitman. `kohort check --population 80000` shows them.",
    },
    Entry {
        names: &["suda", "minimal sample unique", "msu", "special unique"],
        text: "Columns in which a row is unique, while it is unique in no part of them, are a minimal sample unique of the\n\
               row. The fewer columns are enough, and the more such sets there are, the easier the row is found, and the higher\n\
               is its score. `kohort check --suda 3` searches sets of up to 3 columns.",
    },
    Entry {
        names: &["release"],
        text: "The recoded table and its manifest, in a folder that appears whole or not at all.",
    },
    Entry {
        names: &["top coding", "bottom coding", "top", "bottom", "code"],
        text: "Outer values of a column read `>= 90` or `<= 18`, so that an outlier shows nobody and widens no range.\n\
               In a spec: top = 90, or top = { quantile = 0.99 }, which takes a value that k persons hold.",
    },
    Entry {
        names: &["round", "truncate"],
        text: "Numbers become the nearest multiple of a number (round = 100), dates the first day of their month,\n\
               quarter, year or decade (truncate = \"month\"), before classes are made.",
    },
    Entry {
        names: &["knee"],
        text: "Of several values of k that `kohort explore` tried, the one that lies farthest below the straight line\n\
               from the highest risk to the highest loss: up to it, a little loss saves much risk.",
    },
    Entry {
        names: &["manifest"],
        text: "manifest.json in a release: what was asked, what was reached, what it cost. It holds no value of\n\
               the private tables.",
    },
    Entry {
        names: &["verify", "verified"],
        text: "To count again, from the released rows alone, by code that shares nothing with the code that\n\
               made them. Every release is verified before it is written, and anybody can repeat it with `kohort verify`.",
    },
];

/// The entry with this name, in any case of letters.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    let name = name.to_lowercase();
    ENTRIES.iter().find(|entry| entry.names.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<&str> = ENTRIES.iter().flat_map(|entry| entry.names).copied().collect();
        let n_names = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_names);
    }

    #[test]
    fn every_role_is_explained() {
        for role in kohort::model::Role::ALL {
            assert!(find(role.word()).is_some(), "{role}");
        }
        assert!(find("T-Closeness").is_some());
    }
}
