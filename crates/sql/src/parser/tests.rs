//! Statements as users write them, and the messages for faulty ones.

use kohort_model::Disclosure;
use kohort_model::hierarchy::{DateLevel, MaskSide, Rule};
use kohort_model::spec::{Algorithm, Leftovers};
use proptest::prelude::*;

use super::*;

fn one(sql: &str) -> Parsed {
    let mut parsed = parse(sql).unwrap_or_else(|problem| panic!("{sql}: {problem}"));
    assert_eq!(parsed.len(), 1, "{sql}");
    parsed.remove(0)
}

fn statement(sql: &str) -> Statement {
    one(sql).statement
}

/// The message, and the hint below it.
fn problem(sql: &str) -> String {
    let problem = parse(sql).expect_err(sql);
    match problem.hint() {
        Some(hint) => format!("{problem}\n{hint}"),
        None => problem.to_string(),
    }
}

fn pair(sql: &str) -> (Option<String>, Option<String>) {
    let pair = one(sql).pair;
    (pair.purpose, pair.recipient)
}

const VIEW: &str = "CREATE ANONYMIZATION_VIEW v ON SELECT name, zip, disease FROM patient WITH ANONYMIZATION_ID name \
                    ANONYMIZATION_QUASI_ID (zip) ANONYMIZATION_SENSITIVE_ATTR (disease)";

fn view(clauses: &str) -> ViewStatement {
    match statement(&format!("{VIEW} {clauses}")) {
        Statement::CreateView(view) => *view,
        other => panic!("{other:?}"),
    }
}

#[test]
fn statements_are_separated_by_tokens_not_by_text() {
    let parsed = parse("SELECT ';' ; -- a; b\n;; /* ; */ SELECT 2; CREATE DGH zip;").unwrap();
    let texts: Vec<&str> = parsed.iter().map(|parsed| parsed.text.written.as_str()).collect();
    assert_eq!(texts, ["SELECT ';'", "SELECT 2", "CREATE DGH zip"]);
    assert_eq!(parse(" -- nothing\n ; ").unwrap(), []);
}

#[test]
fn a_statement_is_kept_as_it_was_written() {
    assert_eq!(one("\n  SELECT  'größe'\n  FROM t  PURPOSE x ;").text.written, "SELECT  'größe'\n  FROM t  PURPOSE x");
}

#[test]
fn purpose_and_recipient_stand_at_the_end_in_any_order() {
    let both = (Some("research".to_owned()), Some("lab".to_owned()));
    for sql in [
        "SELECT * FROM t PURPOSE research RECIPIENT lab",
        "SELECT * FROM t WHERE a = 1 recipient lab purpose research",
        "SELECT a FROM t GROUP BY a ORDER BY a LIMIT 3 PURPOSE 'research' RECIPIENT \"lab\"",
        "EXPLAIN SELECT * FROM t PURPOSE research RECIPIENT lab",
        "EXPLAIN UTILITY SELECT * FROM t PURPOSE research RECIPIENT lab",
        "WITH c AS (SELECT 1) SELECT * FROM c PURPOSE research RECIPIENT lab",
        "SELECT a FROM t UNION SELECT b FROM u PURPOSE research RECIPIENT lab",
    ] {
        assert_eq!(pair(sql), both, "{sql}");
    }
    assert_eq!(pair("SELECT * FROM t PURPOSE Research"), (Some("Research".to_owned()), None));
    assert_eq!(pair("SELECT * FROM t RECIPIENT 'the lab'"), (None, Some("the lab".to_owned())));
}

#[test]
fn purpose_and_recipient_may_be_written_as_in_the_paper() {
    let both = (Some("Treatment".to_owned()), Some("Nurse".to_owned()));
    for sql in [
        "Select * from PATIENT where zipcode='88512' purpose='Treatment' recipient='Nurse'",
        "SELECT * FROM t RECIPIENT = Nurse PURPOSE Treatment",
    ] {
        assert_eq!(pair(sql), both, "{sql}");
        assert!(one(sql).text.structure.ends_with(" ?"), "{sql}");
        assert!(!one(sql).text.structure.contains("Nurse"), "{sql}");
    }
    // A comparison of a column stays one.
    let sql = "SELECT * FROM t WHERE a = 1 AND recipient = 'Nurse' PURPOSE = 'Treatment'";
    assert_eq!(pair(sql), (Some("Treatment".to_owned()), None));
    assert_eq!(pair("SELECT * FROM t WHERE a = 1 AND purpose = 'Treatment'"), (None, None));
}

#[test]
fn avlike_is_equality_and_a_name_like_any_other() {
    let spelled = |sql: &str| match statement(sql) {
        Statement::Sql(sql) => sql.to_string(),
        other => panic!("{other:?}"),
    };
    for sql in ["SELECT * FROM v WHERE zip AVLIKE '88512'", "SELECT * FROM v WHERE zip avlike '88512' PURPOSE care"] {
        assert_eq!(spelled(sql), "SELECT * FROM v WHERE zip = '88512'", "{sql}");
    }
    assert_eq!(spelled("SELECT zip avlike FROM v"), "SELECT zip AS avlike FROM v");
    assert!(parse("SELECT * FROM v WHERE zip AVLIKE").is_err());
    let sql = VIEW.replace("FROM patient", "FROM patient WHERE zip AVLIKE '1'");
    let Statement::CreateView(view) = statement(&format!("{sql} K 2")) else { panic!() };
    assert_eq!(view.query.to_string(), "SELECT name, zip, disease FROM patient WHERE zip = '1'");
}

#[test]
fn table_is_a_query_where_a_query_can_stand() {
    let spelled = |sql: &str| match statement(sql) {
        Statement::Sql(sql) => sql.to_string(),
        other => panic!("{other:?}"),
    };
    for (sql, selects) in [
        ("TABLE v", "SELECT * FROM v"),
        ("TABLE \"V\" ORDER BY 1 LIMIT 2", "SELECT * FROM \"V\" ORDER BY 1 LIMIT 2"),
        ("TABLE s.v PURPOSE care", "SELECT * FROM s.v"),
        ("TABLE v UNION ALL TABLE w", "SELECT * FROM v UNION ALL SELECT * FROM w"),
        (
            "SELECT 1 FROM (TABLE v) a WHERE x IN (TABLE w)",
            "SELECT 1 FROM (SELECT * FROM v) a WHERE x IN (SELECT * FROM w)",
        ),
        ("CREATE TABLE t (table TEXT)", "CREATE TABLE t (table TEXT)"),
        ("DROP TABLE v", "DROP TABLE v"),
    ] {
        assert_eq!(spelled(sql), selects, "{sql}");
    }
}

#[test]
fn equality_with_any_element_of_an_array_is_in() {
    let condition = |sql: &str| match statement(&format!("SELECT * FROM v WHERE {sql}")) {
        Statement::Sql(sql) => sql.to_string().replace("SELECT * FROM v WHERE ", ""),
        other => panic!("{other:?}"),
    };
    for (sql, spelled) in [
        ("zip = ANY (ARRAY['1', '2'])", "zip IN ('1', '2')"),
        ("zip = ANY ('{1,\"it''s\",NULL}')", "zip IN ('1', 'it''s', NULL)"),
        ("age = ANY ('{1,-2}'::int[])", "age IN (1, -2)"),
        ("NOT zip <> ALL (ARRAY['1'])", "NOT zip NOT IN ('1')"),
        ("zip = ANY ('{}')", "false"),
        ("zip <> ALL ('{}')", "true"),
    ] {
        assert_eq!(condition(sql), spelled, "{sql}");
    }
    for sql in ["zip = ANY (SELECT zip FROM w)", "zip < ANY (ARRAY['1'])", "zip = ANY (zips)", "zip = ALL (ARRAY['1'])"]
    {
        assert!(!condition(sql).contains(" IN "), "{sql}");
    }
}

#[test]
fn move_is_a_fetch_that_shows_nothing() {
    let moved = statement("MOVE FORWARD 5 FROM c");
    assert!(matches!(&moved, Statement::Move { cursor, direction: FetchDirection::Forward { .. } } if cursor == "c"));
    assert!(parse("MOVE").is_err());
}

#[test]
fn the_braces_of_the_paper_stand_around_columns_or_not_at_all() {
    let plain = view("K 2");
    for quasi in ["{zip}", "{{zip}}", "({zip})"] {
        let sql = VIEW.replace("(zip)", quasi).replace("(disease)", "{{disease}}");
        let Statement::CreateView(view) = statement(&format!("{sql} K 2")) else { panic!() };
        assert_eq!((&view.quasi, &view.sensitive), (&plain.quasi, &plain.sensitive), "{quasi}");
    }
    let two = |quasi: &str| match statement(&format!(
        "CREATE ANONYMIZATION_VIEW v ON SELECT n, a, b FROM t WITH ANONYMIZATION_ID n ANONYMIZATION_QUASI_ID {quasi} K 2"
    )) {
        Statement::CreateView(view) => view.quasi,
        other => panic!("{other:?}"),
    };
    let expected = two("(a DGH_NAME d, b)");
    for quasi in ["{a DGH_NAME d, b}", "{{a DGH_NAME d}, {b}}", "{a DGH_NAME d}, {b}", "{{a DGH_NAME d, b}}"] {
        assert_eq!(two(quasi), expected, "{quasi}");
    }
    assert!(parse(&VIEW.replace("(zip)", "{{zip}")).is_err());
}

#[test]
fn purpose_and_recipient_are_names_like_any_other() {
    for sql in [
        "SELECT purpose p",
        "SELECT DISTINCT purpose p",
        "SELECT a, purpose p",
        "SELECT a AS purpose FROM t",
        "SELECT purpose FROM t",
        "SELECT * FROM t purpose",
        "SELECT * FROM t, purpose p",
        "SELECT * FROM a CROSS JOIN recipient r",
        "SELECT 'PURPOSE x RECIPIENT y'",
        "SELECT 1 -- PURPOSE x",
    ] {
        assert_eq!(pair(sql), (None, None), "{sql}");
    }
}

#[test]
fn two_purposes_are_one_too_many() {
    assert!(parse("SELECT * FROM t PURPOSE x PURPOSE y").is_err());
    assert!(parse("SELECT * FROM t PURPOSE x RECIPIENT z PURPOSE y").is_err());
}

#[test]
fn dghs_are_made_from_pairs_files_and_rules() {
    let source = |sql: &str| match statement(sql) {
        Statement::CreateHierarchy { name, source, .. } => (name, source),
        other => panic!("{other:?}"),
    };
    let rule = |rule| Some(HierarchySource::Rule(rule));
    assert_eq!(source("CREATE DGH Zip"), ("zip".to_owned(), None));
    assert_eq!(source("create dgh \"Zip\" from 'a.csv'").1, Some(HierarchySource::Paths("a.csv".into())));
    assert_eq!(source("create dgh \"Zip\"").0, "Zip");
    assert_eq!(source("CREATE DGH zip FROM EDGES 'a.csv'").1, Some(HierarchySource::Edges("a.csv".into())));
    assert_eq!(source("CREATE DGH a FROM STEPS (5, 10, 2.5e1)").1, rule(Rule::Steps(vec![5.0, 10.0, 25.0])));
    assert_eq!(source("CREATE DGH a FROM MASK LEFT").1, rule(Rule::Mask(MaskSide::Left)));
    let levels = vec![DateLevel::Day, DateLevel::Month, DateLevel::Year];
    assert_eq!(source("CREATE DGH a FROM DATES (day, month, year)").1, rule(Rule::Dates(levels)));
    assert_eq!(source("CREATE DGH a FROM FLAT").1, rule(Rule::Flat));
    assert!(matches!(
        statement("CREATE OR REPLACE DGH zip"),
        Statement::CreateHierarchy { or_replace: true, source: None, .. }
    ));
}

#[test]
fn pairs_are_inserted_as_rows_or_as_in_the_paper() {
    let pair = |child: &str, parent: &str| (child.to_owned(), parent.to_owned());
    let name = "zip".to_owned();
    assert_eq!(
        statement("INSERT INTO DGH zip VALUES ('88512', '885**'), (88540, 'it''s')"),
        Statement::InsertHierarchy { name: name.clone(), pairs: vec![pair("88512", "885**"), pair("88540", "it's")] }
    );
    assert_eq!(
        statement("INSERT INTO DGH zip '88512', '885**'"),
        Statement::InsertHierarchy { name, pairs: vec![pair("88512", "885**")] }
    );
}

#[test]
fn a_table_may_be_called_dgh() {
    for sql in ["INSERT INTO dgh VALUES (1)", "INSERT INTO dgh SELECT 1", "INSERT INTO dgh (a) VALUES (1)"] {
        assert!(matches!(statement(sql), Statement::Sql(_)), "{sql}");
    }
}

#[test]
fn the_view_of_the_design_is_understood() {
    let sql = "CREATE OR REPLACE MATERIALIZED ANONYMIZATION_VIEW patient_aview
        ON SELECT name, birth, zipcode, ward, disease FROM patient -- with all
        WITH ANONYMIZATION_ID name
        ANONYMIZATION_QUASI_ID (birth DGH_NAME birth, zipcode DGH_NAME zip)
        ANONYMIZATION_SENSITIVE_ATTR (disease DGH_NAME disease)
        ANONYMIZATION_OTHER (ward)
        name REFERENCES s.choices (k, sa_level)
        USING top_down K 5 BLOCK 1024 T_CLOSENESS 0.3 L_DIVERSITY 2
        LEFTOVERS SUPPRESS DISCLOSURE ROW ANSWERS MATCHING PER PURPOSE
        CHANGES PAPER DEPARTURES WITHDRAW;";
    let Statement::CreateView(view) = statement(sql) else { panic!() };
    let column = |name: &str, hierarchy: &str| ColumnClause { name: name.into(), hierarchy: Some(hierarchy.into()) };
    assert_eq!(
        *view,
        ViewStatement {
            name: "patient_aview".to_owned(),
            or_replace: true,
            query: view.query.clone(),
            query_text: "SELECT name, birth, zipcode, ward, disease FROM patient -- with all".to_owned(),
            identifier: "name".to_owned(),
            quasi: vec![column("birth", "birth"), column("zipcode", "zip")],
            sensitive: vec![column("disease", "disease")],
            other: vec!["ward".to_owned()],
            clauses: Clauses {
                is_materialized: true,
                policy: Some(PolicyReference {
                    person_column: "name".to_owned(),
                    table: TableReference::partial("s", "choices"),
                    k_column: "k".to_owned(),
                    level_column: Some("sa_level".to_owned()),
                }),
                algorithm: Algorithm::TopDown,
                k: Some(5),
                block: BlockSize::Rows(1024.try_into().unwrap()),
                t: Some(0.3),
                l: Some(2),
                leftovers: Leftovers::Suppress,
                disclosure: Disclosure::Row,
                answers: Answers::Matching,
                purposes: Purposes::Apart,
                changes: Some(Changes::Paper),
                departures: Some(Departures::Withdraw),
            },
        }
    );
    assert_eq!(view.query.to_string(), "SELECT name, birth, zipcode, ward, disease FROM patient");
}

#[test]
fn every_clause_of_a_view_has_a_default_except_k() {
    let view = view("K 5").clauses;
    assert_eq!((view.algorithm, view.block, view.leftovers), (Algorithm::Datafly, BlockSize::All, Leftovers::Merge));
    assert_eq!((view.disclosure, view.answers, view.purposes), Default::default());
    assert_eq!((view.t, view.l, view.policy), (None, None, None));
}

#[test]
fn the_form_of_the_papers_figure_needs_no_parentheses() {
    let sql = "CREATE ANONYMIZATION_VIEW v ON SELECT * FROM (SELECT 1 WITH ANONYMIZATION_ID) x, t \
               WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID birth DGH_NAME birth, zip \
               ANONYMIZATION_SENSITIVE_ATTR disease name REFERENCES choices (k)";
    // A WITH in parentheses belongs to the query, which is then faulty.
    assert!(parse(sql).is_err());
    let Statement::CreateView(view) = statement(&sql.replace("(SELECT 1 WITH ANONYMIZATION_ID) x, ", "")) else {
        panic!()
    };
    let names: Vec<&str> = view.quasi.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["birth", "zip"]);
    assert_eq!(view.clauses.policy.unwrap().level_column, None);
}

#[test]
fn a_view_is_made_of_any_query() {
    for query in [
        "SELECT * FROM a JOIN b ON a.x = b.x",
        "SELECT * FROM a WHERE x IN (SELECT y FROM b)",
        "WITH c AS (SELECT 1 x) SELECT * FROM c",
        "(SELECT * FROM a)",
        "SELECT a FROM t UNION ALL SELECT b FROM u",
        "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 1 ORDER BY a LIMIT 3",
        "SELECT * FROM t AS x",
    ] {
        let sql =
            format!("CREATE ANONYMIZATION_VIEW v ON {query} WITH ANONYMIZATION_ID n ANONYMIZATION_QUASI_ID q K 2");
        let Statement::CreateView(view) = statement(&sql) else { panic!() };
        assert_eq!(view.query_text, query);
    }
}

#[test]
fn a_column_may_have_a_clauses_name() {
    let view = view("k REFERENCES choices (k)");
    assert_eq!(view.clauses.policy.unwrap().person_column, "k");
}

#[test]
fn other_statements_of_ours_are_understood() {
    let name = || "v".to_owned();
    let expected = [
        ("DROP DGH v", Statement::DropHierarchy { name: name(), if_exists: false }),
        ("DROP DGH IF EXISTS v", Statement::DropHierarchy { name: name(), if_exists: true }),
        ("DROP ANONYMIZATION_VIEW IF EXISTS V", Statement::DropView { name: name(), if_exists: true }),
        ("REFRESH ANONYMIZATION_VIEW v", Statement::RefreshView { name: name(), how: Refresh::Whole }),
        ("REFRESH ANONYMIZATION_VIEW v PARTIAL", Statement::RefreshView { name: name(), how: Refresh::Partial }),
        ("REFRESH ANONYMIZATION_VIEW v FORCE", Statement::RefreshView { name: name(), how: Refresh::Force }),
        ("SHOW ANONYMIZATION_VIEWS", Statement::ShowViews),
        ("SHOW ANONYMIZATION_VIEW V drift", Statement::ShowDrift { view: name() }),
        ("SHOW DGHS", Statement::ShowHierarchies),
        ("show compliance log", Statement::ShowLog),
        ("SHOW COLLECTION v", Statement::ShowCollection { view: name() }),
    ];
    for (sql, statement_of_it) in expected {
        assert_eq!(statement(sql), statement_of_it, "{sql}");
    }
    assert!(matches!(statement("EXPLAIN UTILITY SELECT 1"), Statement::ExplainUtility(_)));
    assert!(matches!(statement("SHOW TABLES"), Statement::Sql(_)));
    assert!(matches!(statement("DROP TABLE t"), Statement::Sql(_)));
    assert_eq!(
        statement("IMPORT POLICY 'p.xml' INTO choices K 5 PERSON name"),
        Statement::ImportPolicy {
            file: "p.xml".to_owned(),
            table: TableReference::bare("choices"),
            person: Some("name".to_owned()),
            k: Some(5),
        }
    );
}

#[test]
fn problems_of_sql_have_a_place() {
    insta::assert_snapshot!(problem("SELECT 1;\nSELECT * FORM t"), @"line 2, column 15: expected the end of the statement, found t");
    insta::assert_snapshot!(problem("SELECT * FROM"), @"line 1, column 14: expected identifier, found the end of the statement");
    insta::assert_snapshot!(problem("SELECT 'a"), @"line 1, column 8: Unterminated string literal");
    insta::assert_snapshot!(problem("SELECT * FROM t WHERE PURPOSE x RECIPIENT y"), @"line 1, column 23: expected an expression, found the end of the statement");
    insta::assert_snapshot!(problem("EXPLAIN UTILITY DROP TABLE t"), @"line 1, column 17: expected a query, found another statement");
}

#[test]
fn problems_of_dghs_say_what_was_expected() {
    insta::assert_snapshot!(problem("CREATE DGH FROM 'zip.csv'"), @r"
    line 1, column 12: expected the DGH's name, found FROM
    for example: CREATE DGH zip FROM 'zip.csv'
    ");
    insta::assert_snapshot!(problem("CREATE DGH zip FROM zip.csv"), @r"
    line 1, column 21: expected a file in single quotes, EDGES, STEPS, MASK, DATES or FLAT, found zip
    for example: CREATE DGH zip FROM 'zip.csv'
    ");
    insta::assert_snapshot!(problem("CREATE DGH age FROM STEPS (5, 0)"), @r"
    line 1, column 31: expected a width above 0, found 0
    for example: CREATE DGH age FROM STEPS (5, 10, 50)
    ");
    insta::assert_snapshot!(problem("CREATE DGH age FROM STEPS 5"), @r"
    line 1, column 27: expected '(', found 5
    for example: CREATE DGH age FROM STEPS (5, 10, 50)
    ");
    insta::assert_snapshot!(problem("CREATE DGH zip FROM MASK"), @r"
    line 1, column 25: expected RIGHT or LEFT, found the end of the statement
    for example: CREATE DGH zip FROM MASK RIGHT
    ");
    insta::assert_snapshot!(problem("CREATE DGH birth FROM DATES (day, week)"), @r"
    line 1, column 35: expected day, month, quarter, year or decade, found week
    for example: CREATE DGH birth FROM DATES (month, year, decade)
    ");
    insta::assert_snapshot!(problem("INSERT INTO DGH zip"), @r"
    line 1, column 20: expected VALUES, or a child and its parent in single quotes, found the end of the statement
    for example: INSERT INTO DGH zip VALUES ('88512', '885**'), ('88540', '885**')
    ");
    insta::assert_snapshot!(problem("INSERT INTO DGH zip VALUES ('88512')"), @r"
    line 1, column 36: expected ',', found )
    for example: INSERT INTO DGH zip VALUES ('88512', '885**'), ('88540', '885**')
    ");
    insta::assert_snapshot!(problem("CREATE DGH zip zap"), @r"
    line 1, column 16: expected the end of the statement, found zap
    for example: CREATE DGH zip FROM 'zip.csv'
    ");
}

#[test]
fn problems_of_views_say_what_was_expected() {
    let with = |clauses: &str| problem(&format!("{VIEW}\n{clauses}")).lines().next().unwrap().to_owned();
    insta::assert_snapshot!(problem("CREATE ANONYMIZATION_VIEW v ON SELECT 1"), @r"
    line 1, column 40: expected WITH ANONYMIZATION_ID after the query, found the end of the statement
    for example: CREATE ANONYMIZATION_VIEW v ON SELECT name, zip, disease FROM patient WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) ANONYMIZATION_SENSITIVE_ATTR (disease) K 5
    ");
    insta::assert_snapshot!(problem(VIEW), @r"
    line 1, column 165: the view has neither K nor REFERENCES
    add K 5 for groups of at least 5 persons, or name REFERENCES choices (k) to let persons choose
    ");
    insta::assert_snapshot!(with("K 0"), @"line 2, column 3: expected a whole number above 0, found 0");
    insta::assert_snapshot!(with("K 5 K 6"), @"line 2, column 5: K is given twice");
    insta::assert_snapshot!(with("K 5 T_CLOSENESS 1.5"), @"line 2, column 17: expected a number from 0 to 1, found 1.5");
    insta::assert_snapshot!(with("K 5 BLOCK 0"), @"line 2, column 11: expected a number of rows above 0, or ALL, found 0");
    insta::assert_snapshot!(with("K 5 USING miracle"), @"line 2, column 11: expected auto, mondrian, top_down, datafly, cluster or full_domain, found miracle");
    insta::assert_snapshot!(with("K 5 ANONYMIZATION_OTHER (ward, zip)"), @"line 2, column 36: column 'zip' is named twice");
    insta::assert_snapshot!(with("name REFERENCES choices"), @"line 2, column 24: expected '(', found the end of the statement");
    insta::assert_snapshot!(with("K 5 DISCLOSURE ALL"), @"line 2, column 16: expected CLASS or ROW, found ALL");
    insta::assert_snapshot!(with("K 5 WITH"), @"line 2, column 5: expected a clause of the view, found WITH");
    let nothing_sensitive =
        "CREATE ANONYMIZATION_VIEW v ON SELECT 1 WITH ANONYMIZATION_ID n ANONYMIZATION_QUASI_ID q K 5";
    insta::assert_snapshot!(problem(&format!("{nothing_sensitive} L_DIVERSITY 2")).lines().next().unwrap(), @"line 1, column 107: L_DIVERSITY needs ANONYMIZATION_SENSITIVE_ATTR");
    insta::assert_snapshot!(problem("CREATE ANONYMIZATION_VIEW v ON DROP TABLE t WITH ANONYMIZATION_ID n"), @"line 1, column 32: expected a query, found another statement");
    insta::assert_snapshot!(problem("SHOW COMPLIANCE"), @r"
    line 1, column 16: expected LOG, found the end of the statement
    for example: SHOW COMPLIANCE LOG
    ");
    insta::assert_snapshot!(problem("IMPORT POLICY p INTO choices"), @r"
    line 1, column 15: expected the policy's file in single quotes, found p
    for example: IMPORT POLICY 'policy.toml' INTO choices
    ");
}

const SOUP: [&str; 61] = [
    "CREATE",
    "OR",
    "REPLACE",
    "MATERIALIZED",
    "ANONYMIZATION_VIEW",
    "ON",
    "SELECT",
    "*",
    "FROM",
    "t",
    "WITH",
    "ANONYMIZATION_ID",
    "ANONYMIZATION_QUASI_ID",
    "ANONYMIZATION_SENSITIVE_ATTR",
    "ANONYMIZATION_OTHER",
    "DGH_NAME",
    "DGH",
    "INSERT",
    "INTO",
    "VALUES",
    "(",
    ")",
    ",",
    "'a'",
    "\"B\"",
    "5",
    "0.5",
    "K",
    "BLOCK",
    "ALL",
    "USING",
    "datafly",
    "REFERENCES",
    "PURPOSE",
    "RECIPIENT",
    "PER",
    "STEPS",
    "MASK",
    "RIGHT",
    "DATES",
    "day",
    "EDGES",
    "FLAT",
    "DROP",
    "IF",
    "EXISTS",
    "REFRESH",
    "SHOW",
    "DGHS",
    "COMPLIANCE",
    "LOG",
    "COLLECTION",
    "DRIFT",
    "EXPLAIN",
    "UTILITY",
    "IMPORT",
    "POLICY",
    ";",
    ".",
    "-- c\n",
    "ü",
];

proptest! {
    #[test]
    fn no_soup_of_tokens_makes_the_parser_panic(words in prop::collection::vec(prop::sample::select(&SOUP[..]), 0..40)) {
        let _ = parse(&words.join(" "));
    }

    #[test]
    fn no_soup_after_a_beginning_of_ours_makes_the_parser_panic(
        beginning in prop::sample::select(&[
            "CREATE DGH", "CREATE OR REPLACE", "INSERT INTO DGH", "DROP", "SHOW", "IMPORT POLICY 'f'", "EXPLAIN UTILITY",
            "CREATE ANONYMIZATION_VIEW v ON SELECT 1 WITH ANONYMIZATION_ID a",
        ][..]),
        words in prop::collection::vec(prop::sample::select(&SOUP[..]), 0..12),
    ) {
        let _ = parse(&format!("{beginning} {}", words.join(" ")));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        let _ = parse(&text);
        let _ = is_complete(&text);
        let _ = StatementText::of(&text);
    }
}
