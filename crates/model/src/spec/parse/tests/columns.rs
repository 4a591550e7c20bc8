//! Columns: their roles, hierarchies and requirements.

use super::*;

#[test]
fn p_is_another_name_of_l() {
    let spec = |settings: &str| {
        let columns = format!("q = \"quasi\", d = {{ role = \"sensitive\", {settings} }}");
        format!("k = 2\n[tables.a]\nfile = \"a.csv\"\ncolumns = {{ {columns} }}")
    };
    assert_eq!(Spec::parse(&spec("p = 3")).unwrap(), Spec::parse(&spec("l = 3")).unwrap());
    let problems = Spec::parse(&spec("l = 3, p = 3")).unwrap_err();
    assert_eq!(problems.to_string(), "line 4: tables.a.columns.d.p: l and p are two names of the same requirement");
}

#[test]
fn settings_of_sensitive_columns_have_ranges() {
    assert_eq!(
        problems_of_columns(
            "a = { role = \"sensitive\", l = 0, entropy_l = 0.5, recursive_cl = [0, 2], t = 1.5, alpha = 0, beta = 0.0, enhanced_beta = nan }\n\
             b = { role = \"sensitive\", l = 2.5, recursive_cl = [3], distance = \"equal\" }\n\
             c = { role = \"sensitive\", recursive_cl = [3, 1.5], t = 0.1, distance = \"hierarchical\" }\n\
             d = { role = \"plain\", l = 2, type = \"text\" }\n"
        ),
        "line 6: tables.a.columns.a.l: must be a whole number of at least 1, not 0\n\
         line 6: tables.a.columns.a.entropy_l: must be a number of at least 1, not 0.5\n\
         line 6: tables.a.columns.a.recursive_cl: must be [c, l] with c above 0 and a whole l of at least 1, not 0\n\
         line 6: tables.a.columns.a.t: must be a number from 0 to 1, not 1.5\n\
         line 6: tables.a.columns.a.alpha: must be a number above 0 and up to 1, not 0\n\
         line 6: tables.a.columns.a.beta: must be a number above 0, not 0\n\
         line 6: tables.a.columns.a.enhanced_beta: must be a number above 0, not NaN\n\
         line 7: tables.a.columns.b.l: must be a whole number of at least 1, found a decimal number\n\
         line 7: tables.a.columns.b.recursive_cl: must be [c, l] with c above 0 and a whole l of at least 1, not a list of 1\n\
         line 7: tables.a.columns.b.distance: a distance is given without t\n  \
         add for example t = 0.2, or take the distance out\n\
         line 8: tables.a.columns.c.recursive_cl: must be [c, l] with c above 0 and a whole l of at least 1, not 1.5\n\
         line 8: tables.a.columns.c.distance: the hierarchical distance needs a hierarchy\n  \
         add for example hierarchy = \"disease.csv\", or use distance \"equal\" or \"ordered\"\n\
         line 9: tables.a.columns.d.type: a column that is plain is not generalized, so it takes neither a type nor a hierarchy\n  \
         give the column role \"quasi\" or \"sensitive\", or take type and hierarchy out\n\
         line 9: tables.a.columns.d.l: a requirement needs a sensitive column, but this one is plain\n  \
         give the column role \"sensitive\", or take the requirement out\n"
    );
}

#[test]
fn hierarchies_have_few_forms() {
    assert_eq!(
        problems_of_columns(
            "a = { role = \"quasi\", hierarchy = \"mask\" }\n\
             b = { role = \"quasi\", hierarchy = { steps = [5], mask = \"right\" } }\n\
             c = { role = \"quasi\", hierarchy = { steps = [5, 12] } }\n\
             d = { role = \"quasi\", hierarchy = { dates = [\"year\", \"month\"] } }\n\
             e = { role = \"quasi\", hierarchy = { dates = [\"weak\"] } }\n\
             f = { role = \"quasi\", type = \"text\", hierarchy = { steps = [5] } }\n\
             \"g h\" = { role = \"quasi\", hierarchy = {} }\n"
        ),
        "line 6: tables.a.columns.a.hierarchy: 'mask' needs a setting\n  \
         for example hierarchy = { mask = \"right\" }\n\
         line 7: tables.a.columns.b.hierarchy: must have exactly one of steps, mask, dates and edges, found 2\n  \
         for example { steps = [5, 10, 50] } or { mask = \"right\" }\n\
         line 8: tables.a.columns.c.hierarchy: step 2 is not a multiple of the step before it\n  \
         give widths that nest, the smallest first, such as 5, 10, 50\n\
         line 9: tables.a.columns.d.hierarchy: the date levels are not in the order day, month, quarter, year, decade\n  \
         name levels from fine to coarse, such as \"month\", \"year\"\n\
         line 10: tables.a.columns.e.hierarchy.dates: must be day, month, quarter, year or decade, not 'weak'\n\
         line 11: tables.a.columns.f.hierarchy: 'steps' does not fit a column of type text\n  \
         steps are for numbers, dates for dates and timestamps, masks and flat for any type\n\
         line 12: tables.a.columns.\"g h\".hierarchy: must have exactly one of steps, mask, dates and edges, found 0\n  \
         for example { steps = [5, 10, 50] } or { mask = \"right\" }\n"
    );
}

#[test]
fn keys_are_keys_or_identifiers() {
    let text = |role: &str| {
        format!(
            "k = 5\n[tables.a]\nfile = \"a.csv\"\nperson = \"id\"\n[tables.a.columns]\nid = \"{role}\"\nq = \"quasi\""
        )
    };
    for role in ["key", "identifier"] {
        assert!(Spec::parse(&text(role)).is_ok());
    }
    assert_eq!(
        problems(&text("quasi")),
        "line 6: tables.a.columns.id: the table's person can't be quasi\n  \
         give it role \"key\", or \"identifier\" if it must never be released\n"
    );
}

#[test]
fn only_persons_have_a_k_of_their_own() {
    assert_eq!(
        problems(
            "k = 5\n[tables.a]\nfile = \"a.csv\"\nperson = \"id\"\ncolumns = { q = \"quasi\" }\n[tables.b]\n\
             file = \"b.csv\"\nparent = { table = \"a\", foreign_key = \"id\" }\ncolumns = { w = \"person_k\" }\n"
        ),
        "line 9: tables.b.columns.w: person_k belongs in the table of persons, not in a child table\n  \
         move the column to the table of persons, or give it another role\n"
    );
}
