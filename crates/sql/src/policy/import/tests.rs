//! Policy files and the rows made from them. What a file leaves open is refused or an error, never guessed.

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::TableReference;

use super::*;
use crate::parser::PolicyReference;
use crate::policy::{Pair, Policies};

const P3P: &str = r##"<POLICIES xmlns="http://www.w3.org/2002/01/P3Pv1"><POLICY name="clinic">
  <STATEMENT>
    <PURPOSE><current/><contact required="opt-in"/></PURPOSE>
    <RECIPIENT><ours/></RECIPIENT>
    <RETENTION><indefinitely/></RETENTION>
    <DATA-GROUP><DATA ref="#user.bdate"/><DATA ref="http://clinic.example/base#disease"/></DATA-GROUP>
  </STATEMENT>
  <STATEMENT>
    <PURPOSE><current/></PURPOSE><RECIPIENT><ours/><public/></RECIPIENT>
    <RETENTION><stated-purpose/></RETENTION>
    <DATA-GROUP><DATA ref="#zip"/><DATA ref="#disease"/></DATA-GROUP>
  </STATEMENT>
  <STATEMENT>
    <PURPOSE><admin/></PURPOSE><RECIPIENT><ours/></RECIPIENT><RETENTION><no-retention/></RETENTION>
    <DATA-GROUP><DATA ref="#zip"/></DATA-GROUP>
  </STATEMENT>
  <STATEMENT><NON-IDENTIFIABLE/></STATEMENT>
</POLICY></POLICIES>"##;

fn today() -> NaiveDate {
    "2026-01-01".parse().unwrap()
}

/// Imports `policy.<extension>` beside `policy.xml`.
fn import(extension: &str, text: &str, k: Option<u32>) -> Result<RecordBatch, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("policy.xml"), P3P).unwrap();
    let path = folder.path().join(format!("policy.{extension}"));
    std::fs::write(&path, text).unwrap();
    import_policy(&path, &ImportDefaults { person: None, k }, today()).map_err(|problem| {
        let text = format!("{problem}\n{}", problem.hint().unwrap_or_default());
        text.replace(&format!("{}/", folder.path().display()), "")
    })
}

fn table(batch: &RecordBatch) -> String {
    pretty_format_batches(std::slice::from_ref(batch)).unwrap().to_string()
}

const TOML: &str = r#"
person = "name"
k = 5
[[policy]]
purpose = "Treatment"
recipient = "Nurse"
k = 2
sa_level = 1
columns = { birth = "forever", zipcode = 2030-12-31, disease = 365 }
[[policy.exceptions]]
person = "P3"
k = 3
columns = { zipcode = 30 }
[[policy]]
purpose = "Research"
recipient = "Lab"
columns = { disease = 0 }
"#;

#[test]
fn a_policy_in_toml_becomes_a_table_of_choices() {
    insta::assert_snapshot!(table(&import("toml", TOML, None).unwrap()), @r"
    +------+-----------+-----------+---+----------+-----------+----------+-------------+------------+---------------+------------+---------------+
    | name | purpose   | recipient | k | sa_level | others_op | birth_op | birth_until | disease_op | disease_until | zipcode_op | zipcode_until |
    +------+-----------+-----------+---+----------+-----------+----------+-------------+------------+---------------+------------+---------------+
    | P3   | Treatment | Nurse     | 3 | 1        | false     | false    |             | false      |               | true       | 2026-01-31    |
    | *    | Treatment | Nurse     | 2 | 1        | false     | true     | 9999-12-31  | true       | 2027-01-01    | true       | 2030-12-31    |
    | *    | Research  | Lab       | 5 | 0        | false     | false    |             | true       | 2026-01-01    | false      |               |
    +------+-----------+-----------+---+----------+-----------+----------+-------------+------------+---------------+------------+---------------+
    ");
}

#[test]
fn an_imported_policy_is_read_as_choices() {
    let batch = import("toml", TOML, None).unwrap();
    let reference = PolicyReference {
        person_column: "name".to_owned(),
        table: TableReference::bare("choices"),
        k_column: "k".to_owned(),
        level_column: Some("sa_level".to_owned()),
    };
    let columns = ["birth", "zipcode", "disease"].map(str::to_owned);
    let policies = Policies::read(&[batch], &reference, &columns).unwrap();
    let pair =
        policies.pair(&Pair { purpose: Some("treatment".to_owned()), recipient: Some("nurse".to_owned()) }).unwrap();
    let shows = |person: &str| {
        let choice = policies.choice(pair, policies.person(person).unwrap()).unwrap();
        [0, 1, 2].map(|column| choice.shows(column, "2026-01-31".parse().unwrap()))
    };
    assert_eq!(shows("P3"), [false, true, false]);
    assert_eq!(shows("somebody"), [true, true, true]);
    assert_eq!(policies.k(policies.person("P3").unwrap()), 5, "research asks for more");
}

#[test]
fn a_p3p_policy_becomes_a_table_of_choices_once_its_retentions_have_a_length() {
    let toml =
        "p3p = \"policy.xml\"\nk = 5\n[retention]\nstated-purpose = 2027-06-30\n[data]\n\"user.bdate\" = \"birth\"\n";
    insta::assert_snapshot!(table(&import("toml", toml, None).unwrap()), @r"
    +--------+---------+-----------+---+----------+-----------+----------+-------------+------------+---------------+--------+------------+
    | person | purpose | recipient | k | sa_level | others_op | birth_op | birth_until | disease_op | disease_until | zip_op | zip_until  |
    +--------+---------+-----------+---+----------+-----------+----------+-------------+------------+---------------+--------+------------+
    | *      | current | ours      | 5 | 0        | false     | true     | 9999-12-31  | true       | 2027-06-30    | true   | 2027-06-30 |
    | *      | contact | ours      | 5 | 0        | false     | false    |             | false      |               | false  |            |
    | *      | current | public    | 5 | 0        | false     | false    |             | true       | 2027-06-30    | true   | 2027-06-30 |
    | *      | admin   | ours      | 5 | 0        | false     | false    |             | false      |               | false  |            |
    +--------+---------+-----------+---+----------+-----------+----------+-------------+------------+---------------+--------+------------+
    ");
}

#[test]
fn settings_that_p3p_leaves_open_are_not_guessed() {
    insta::assert_snapshot!(import("xml", P3P, Some(5)).unwrap_err(), @r#"
    policy.xml: the retention 'stated-purpose' has no definite length
    import a TOML file that says p3p = "policy.xml", a k, and under [retention] stated-purpose = 365
    "#);
    let certain = P3P.replace("stated-purpose", "indefinitely");
    insta::assert_snapshot!(import("xml", &certain, None).unwrap_err(), @r"
    policy.xml: policy 1 has no k
    give k in the TOML file, or IMPORT POLICY ... INTO choices K 5
    ");
    assert_eq!(import("xml", &certain, Some(5)).unwrap().num_rows(), 4);
    insta::assert_snapshot!(import("xml", &certain.replacen("<RETENTION><indefinitely/></RETENTION>", "", 1), Some(5)).unwrap_err(), @"policy.xml: line 2: the STATEMENT has no RETENTION");
}

#[test]
fn whatever_a_p3p_policy_says_beyond_what_is_known_is_refused() {
    let certain = P3P.replace("stated-purpose", "indefinitely");
    for (there, here, said) in [
        ("<admin/>", "<EXTENSION optional=\"yes\"><x/></EXTENSION><admin/>", "line 14: an EXTENSION may ask"),
        ("<admin/>", "<surveillance/>", "line 14: P3P has no surveillance in PURPOSE"),
        ("<DATA ref=\"#user.bdate\"/>", "<DATA/>", "line 6: DATA has no ref"),
        (
            "<DATA-GROUP><DATA ref=\"#user",
            "<DATUM/><DATA-GROUP><DATA ref=\"#user",
            "line 6: P3P has no DATUM in STATEMENT",
        ),
        ("\"opt-in\"", "\"never\"", "line 3: required must be always, opt-in or opt-out in contact"),
        ("<indefinitely/>", "<indefinitely/><no-retention/>", "line 5: RETENTION names several retentions"),
        (
            "<RETENTION>",
            "<RETENTION><indefinitely/></RETENTION><RETENTION>",
            "line 5: STATEMENT has several RETENTIONs",
        ),
        ("</POLICIES>", "<POLICY/></POLICIES>", "line 18: the file has several policies"),
        (
            "<admin/></PURPOSE>",
            "<current/></PURPOSE>",
            "line 13: of two STATEMENTs with the same purpose and recipient, one allows column 'zip' and one does not",
        ),
    ] {
        assert!(certain.contains(there), "{there}");
        let problem = import("xml", &certain.replacen(there, here, 1), Some(5)).unwrap_err();
        assert!(problem.contains(said), "{here}: {problem}");
    }
}

#[test]
fn entities_of_a_document_type_are_refused() {
    let bomb = format!("<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>{P3P}");
    insta::assert_snapshot!(import("xml", &bomb, Some(5)).unwrap_err(), @"policy.xml: line 1: this is not well-formed XML, or it has a document type, which is refused");
}

#[test]
fn a_policy_that_leaves_something_open_is_refused() {
    let problem = |text: &str| import("toml", text, None).unwrap_err();
    insta::assert_snapshot!(problem("person = \"name\""), @r#"
    policy.toml: the file has no policy
    write a [[policy]], or p3p = "policy.xml"
    "#);
    insta::assert_snapshot!(problem("[[policy]]\npurpose = \"x\""), @r"
    policy.toml: policy 1 has no k
    give k in the TOML file, or IMPORT POLICY ... INTO choices K 5
    ");
    insta::assert_snapshot!(problem("k = 2\n[[policy]]\npurpose = \"x\"\n[[policy]]\n"), @r"
    policy.toml: some policies have a purpose, others have none
    give every policy a purpose, or none, so that all are for any purpose
    ");
    insta::assert_snapshot!(problem("k = 2\n[[policy]]\npurpose = \"x\"\n[[policy]]\npurpose = \"X\"\n"), @r"
    policy.toml: policy 2 repeats the purpose, recipient and person of an earlier one
    write one policy with all columns
    ");
    insta::assert_snapshot!(problem("k = 2\n[[policy]]\ncolumns = { a = \"long\" }"), @r#"policy.toml: line 3: a retention must be "forever", a date such as 2030-12-31, or a number of days"#);
    insta::assert_snapshot!(problem("k = 2\n[[policy]]\ncolumns = { a = 99999999 }"), @r#"
    policy.toml: a retention ends beyond the year 9999
    write "forever"
    "#);
    insta::assert_snapshot!(problem("k = 2\nkolumns = 3"), @"policy.toml: line 2: unknown field `kolumns`, expected one of `person`, `k`, `sa_level`, `p3p`, `retention`, `data`, `policy`");
    insta::assert_snapshot!(problem("k = 2\n[[policy]]\n[[policy.exceptions]]\nperson = 4711\n"), @"policy.toml: line 4: the value has a wrong type for this key");
    insta::assert_snapshot!(import("csv", "", None).unwrap_err(), @r"
    policy.csv: neither TOML nor P3P
    give a file that ends in .toml or .xml
    ");
}

#[test]
fn a_column_that_every_table_of_choices_has_is_no_column_of_a_policy() {
    let refused = |text: &str| import("toml", text, None).unwrap_err();
    let twice = |column: &str| format!("policy.toml: the table of choices would have two columns '{column}'\n");
    assert!(refused("k = 2\n[[policy]]\ncolumns = { others = \"forever\" }\n").starts_with(&twice("others_op")));
    assert!(refused("k = 2\nperson = \"k\"\n[[policy]]\n").starts_with(&twice("k")));
}
