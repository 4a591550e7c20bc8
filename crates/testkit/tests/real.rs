//! `auto` on real data never loses more than other partitioners that a user might choose instead. Needs the real data.

use kohort_core::{Anonymized, anonymize};
use kohort_model::spec::Algorithm;
use kohort_model::{Column, Silent, Spec, Table};
use kohort_testkit::data;

/// A table of the real data and what its columns are for.
struct Sample {
    file: &'static str,
    /// How many of its first rows are used.
    n_rows: usize,
    /// Quasi columns, each with its hierarchy as in a spec; none for numbers.
    quasi: &'static [(&'static str, &'static str)],
    /// All other columns.
    dropped: &'static [&'static str],
}

const FLAT: &str = "\"flat\"";

const ADULT: Sample = Sample {
    file: "adult/adult.csv",
    n_rows: 30_162,
    quasi: &[
        ("sex", "\"adult_hierarchy_sex.csv\""),
        ("age", ""),
        ("race", "\"adult_hierarchy_race.csv\""),
        ("marital-status", "\"adult_hierarchy_marital-status.csv\""),
        ("education", "\"adult_hierarchy_education.csv\""),
        ("native-country", "\"adult_hierarchy_native-country.csv\""),
        ("workclass", "\"adult_hierarchy_workclass.csv\""),
        ("occupation", "\"adult_hierarchy_occupation.csv\""),
    ],
    dropped: &["salary-class"],
};

const ACS_MA: Sample = Sample {
    file: "acs_ma/acs_ma.parquet",
    n_rows: 20_000,
    quasi: &[("AGEP", ""), ("SEX", FLAT), ("RAC1P", FLAT), ("MAR", FLAT), ("SCHL", ""), ("CIT", FLAT), ("RELP", FLAT)],
    dropped: &["id", "DIS", "ESP", "MIG", "MIL", "ANC", "NATIVITY", "DEAR", "DEYE", "DREM", "employed", "year"],
};

const PEOPLE: Sample = Sample {
    file: "lahman/People.parquet",
    n_rows: 21_271,
    quasi: &[
        ("birthYear", ""),
        ("birthCountry", FLAT),
        ("birthState", FLAT),
        ("height", ""),
        ("weight", ""),
        ("bats", FLAT),
        ("throws", FLAT),
    ],
    dropped: &[
        "ID",
        "playerID",
        "birthMonth",
        "birthDay",
        "birthCity",
        "deathYear",
        "deathMonth",
        "deathDay",
        "deathCountry",
        "deathState",
        "deathCity",
        "nameFirst",
        "nameLast",
        "nameGiven",
        "debut",
        "bbrefID",
        "finalGame",
        "retroID",
    ],
};

const CENSUS: Sample = Sample {
    file: "census_like/persons.parquet",
    n_rows: 20_000,
    quasi: &[
        ("sex", FLAT),
        ("age", ""),
        ("race", FLAT),
        ("marital", FLAT),
        ("edu", FLAT),
        ("state", FLAT),
        ("zip", "{ mask = \"right\" }"),
    ],
    dropped: &[
        "person_id",
        "county_fips",
        "region",
        "hispanic",
        "country_born",
        "citizen",
        "home_type",
        "famincome",
        "occup_code",
        "ind_code",
        "labor_status",
        "work_class",
        "weekly_earn",
        "hh_size",
    ],
};

impl Sample {
    /// The table and a spec for it, or `None` if the real data are absent.
    fn read(&self) -> Option<(Table, Spec)> {
        let path = data::real(self.file)?;
        let file = path.file_name().expect("it is a file").to_string_lossy();
        let quasi = self.quasi.iter().map(|&(name, hierarchy)| match hierarchy {
            "" => format!("{name} = \"quasi\"\n"),
            hierarchy => format!("{name} = {{ role = \"quasi\", hierarchy = {hierarchy} }}\n"),
        });
        let dropped = self.dropped.iter().map(|name| format!("{name} = \"drop\"\n"));
        let columns: String = quasi.chain(dropped).collect();
        let spec = format!("k = 2\n[tables.sample]\nfile = \"{file}\"\n[tables.sample.columns]\n{columns}");
        let spec = Spec::parse(&spec).unwrap_or_else(|problems| panic!("{problems}"));
        let loaded = kohort_io::load(path.parent().expect("it is in a folder"), &spec, &spec.tables[0], &Silent)
            .unwrap_or_else(|problems| panic!("{problems}"));
        Some((first_rows(loaded.table, self.n_rows), spec))
    }

    fn compare(&self) {
        let Some((table, mut spec)) = self.read() else { return };
        for k in [2, 10, 50] {
            spec.k = k;
            let mut run = |algorithm: Algorithm| -> Anonymized {
                spec.algorithm = algorithm;
                anonymize(&table, &spec, &spec.requirements(&spec.tables[0]), &Silent).expect("k can be reached")
            };
            let auto = run(Algorithm::Auto).loss.lm;
            for other in [Algorithm::Mondrian, Algorithm::TopDown] {
                let lm = run(other).loss.lm;
                assert!(auto <= lm + 1e-9, "{}, k = {k}: auto loses {auto:.4}, {} {lm:.4}", self.file, other.word());
            }
        }
    }
}

/// The table as if its file ended after so many rows.
fn first_rows(mut table: Table, n_rows: usize) -> Table {
    table.n_rows = n_rows.min(table.n_rows);
    for column in &mut table.columns {
        let cells = (0..table.n_rows).map(|row| column.cell(row));
        let kept = Column::from_cells(&column.name, column.role, cells);
        (column.texts, column.ids) = (kept.texts, kept.ids);
    }
    table
}

#[test]
fn auto_loses_no_more_than_others_on_adult() {
    ADULT.compare();
}

#[test]
fn auto_loses_no_more_than_others_on_the_survey_of_massachusetts() {
    ACS_MA.compare();
}

#[test]
fn auto_loses_no_more_than_others_on_people_who_are_nearly_unique() {
    PEOPLE.compare();
}

#[test]
fn auto_loses_no_more_than_others_on_a_census() {
    CENSUS.compare();
}
