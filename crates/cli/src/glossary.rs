//! The words of `kohort explain`: one short text each.

/// A word and what it means.
pub(crate) struct Entry {
    /// The word, first, and other names it goes by.
    pub(crate) names: &'static [&'static str],
    /// What it means.
    pub(crate) text: &'static str,
}

/// All words, in the order in which a newcomer meets them.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["k", "k-anonymity"],
        text: "Everybody in the release looks the same, on all quasi columns, as at least k-1 others.\n\
               Whoever knows all of these about a person finds k candidates, so the risk is 1/k at most.\n\
               There is no default: 5 is common, health agencies ask for 11 or 12.",
    },
    Entry {
        names: &["person"],
        text: "Who is protected. k counts persons, never rows: a person may have several rows and counts once.\n\
               The column that names the person is given by `person`; without it each row is one person.",
    },
    Entry {
        names: &["role"],
        text: "What a column is for: identifier, quasi, sensitive, key, plain, person_k or drop.\n\
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
               k alone does not protect it: where all k persons share one value, it is known. So give it\n\
               a requirement: l, t, alpha or beta.",
    },
    Entry {
        names: &["key"],
        text: "A column that joins tables or names the person. Renumbered in the released order, and released\n\
               only where another table points to it. Any other key says which table's key it holds\n\
               (references), or is refused.",
    },
    Entry { names: &["plain"], text: "A column that helps nobody to find a person. Released unchanged." },
    Entry {
        names: &["person_k"],
        text: "A column with each person's own k. The larger of it and the release's k counts. Never released.",
    },
    Entry { names: &["drop"], text: "A column that is not released." },
    Entry {
        names: &["class", "equivalence class"],
        text: "Persons that look the same on all quasi columns. Every requirement is about classes.",
    },
    Entry {
        names: &["requirement"],
        text: "What every class must satisfy: k, a person's own k, l-diversity, t-closeness, alpha, beta.\n\
               Several may be asked at once. Where they can't be reached, nothing is written.",
    },
    Entry {
        names: &["l", "p", "l-diversity", "distinct l-diversity", "p-sensitivity"],
        text: "Every class shows at least l different values of the sensitive column, so that being in it\n\
               does not tell one's own. Written l = 3, or --sensitive disease:l=3. Others call it p-sensitivity,\n\
               so p = 3 is the same.",
    },
    Entry {
        names: &["entropy_l", "entropy l-diversity"],
        text: "Stronger than l: the values of a class are spread as evenly as entropy_l equally frequent ones\n\
               would be (their entropy is at least ln entropy_l).",
    },
    Entry {
        names: &["recursive_cl", "recursive l-diversity"],
        text: "recursive_cl = [c, l]: the most frequent value of a class is less frequent than c times the\n\
               l-th and all rarer ones together. On the command line: recursive_cl=3:2.",
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
        text: "No sensitive value is more frequent in a class than in the whole release by more than this\n\
               factor of its frequency: (q - p) / p is at most beta.",
    },
    Entry {
        names: &["enhanced_beta"],
        text: "beta-likeness that also protects frequent values: (q - p) / p is at most beta, and at most -ln p.",
    },
    Entry {
        names: &["audience", "audiences"],
        text: "A recipient of the release, with the quasi columns it may know and a k of its own. All audiences receive\n\
               the same table: two tables of the same persons could be put together, see `kohort audit`.\n\
               Written [audiences.insurer] with quasi = [\"age\", \"vehicle\"].",
    },
    Entry {
        names: &["butterfly", "body", "wing"],
        text: "Rows that look the same in the columns several audiences may know, the body, and fall into classes of\n\
               their own in the columns of each, the wings. Every audience sees classes of k persons, and nobody pays\n\
               for columns they don't know.",
    },
    Entry {
        names: &["collusion"],
        text: "Audiences who put something together. If it is their tables, nothing is gained: all have the same one.\n\
               If it is what they know about people, they see smaller classes, of at least `k` persons where\n\
               [collusion] asks for it.",
    },
    Entry {
        names: &["audit"],
        text: "To read several releases of the same persons together: what they say of each is intersected, and counted\n\
               again. `kohort audit` does it for any files.",
    },
    Entry {
        names: &["register", "registers", "k-join-anonymity"],
        text: "A public database of the population that the private table is of. An attacker looks people up in it, so\n\
               everybody in it makes the crowd larger: classes need k persons of table and register together, and are\n\
               blurred less. Written [registers.town] with file and key.",
    },
    Entry {
        names: &["group", "sensitive group", "sensitive_group"],
        text: "With a register: private persons whose sensitive values are listed together, so that nobody can tell\n\
               whose each is. k, l, t and the rest hold in every group.",
    },
    Entry {
        names: &["presence", "delta_presence", "delta-presence"],
        text: "Whether somebody is in the private table at all. With a register a class mixes its persons with others;\n\
               delta_presence = [0.0, 0.3] bounds their share in every class.",
    },
    Entry {
        names: &["estimate"],
        text: "What a reader expects from a release: rows are taken to be spread evenly over what their cells show.\n\
               `kohort estimate` answers range counts so, and which sensitive values are behind them.",
    },
    Entry {
        names: &["hierarchy", "dgh"],
        text: "A tree over a column's values; its root stands for everything. A class shows the lowest node\n\
               that covers all its members. Read from a file (one row per value: value;parent;...;root) or made\n\
               by rule: steps, mask, dates, flat. Try `kohort hierarchy --help`.",
    },
    Entry {
        names: &["generalize", "recoding"],
        text: "To show something wider than the value, such as a range or a node of the hierarchy, that still\n\
               covers it. Nothing in a release is made up.",
    },
    Entry {
        names: &["suppress", "max_suppressed", "leftovers"],
        text: "To leave a person out, and to count that. max_suppressed says which share may be left out, 0 by\n\
               default. Persons that fit into no class join the nearest (leftovers = \"merge\") or are left out\n\
               (\"suppress\").",
    },
    Entry {
        names: &["mondrian", "partitioner"],
        text: "How persons become classes: all of them are cut in two at the median of one column, and so on,\n\
               as long as both halves satisfy the requirement.",
    },
    Entry {
        names: &["loss", "lm", "ncp"],
        text: "What the release says less than the input, 0 (nothing lost) to 1 (everything). Per column the\n\
               mean over all cells: width of the range over the whole column's, or leaves below the node.",
    },
    Entry {
        names: &["risk"],
        text: "The chance that an attacker who knows all of a person's quasi values picks the right row: one\n\
               over the size of the class. Highest: in the smallest class. Average: over all persons.",
    },
    Entry {
        names: &["release"],
        text: "The recoded table and its manifest, in a folder that appears whole or not at all.",
    },
    Entry {
        names: &["manifest"],
        text: "manifest.json in a release: what was asked, what was reached, what it cost. Holds no value of\n\
               the data.",
    },
    Entry {
        names: &["verify", "verified"],
        text: "To count again, from the released rows alone, by code that shares nothing with the code that\n\
               made them. No release is written without it. `kohort verify` does it for anybody.",
    },
];

/// The entry with this name, whatever its case.
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
