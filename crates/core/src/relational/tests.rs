//! What many tables promise: the golden students, and properties over random ones.

use std::collections::BTreeMap;

use kohort_model::{Cells, Column, Hierarchy, Silent};
use proptest::prelude::*;

use super::representative::Representative;
use super::*;
use crate::encode::Domain;
use crate::relational::forest::Forest;

const COURSES: &str = "Math;Science;*\nPhysics;Science;*\nCS;Science;*\nHistory;Social;*\nReligion;Social;*\n";
const BOOKS: &str = "Discrete;Math Book;*\nCalculus;Math Book;*\nDynamics;Math Book;*\nRelg. H.;Relg Book;*\n\
                     Yodaism;Relg Book;*\nAm. Hist;Hist Book;*\nOttomans;Hist Book;*\n";

pub(super) fn table(name: &str, person: Option<usize>, columns: Vec<Column>) -> Table {
    Table { name: name.to_owned(), n_rows: columns[0].ids.len(), columns, person }
}

pub(super) fn column<const C: usize>(name: &str, role: Role, rows: &[[&str; C]], position: usize) -> Column {
    Column::from_cells(name, role, rows.iter().map(|row| Some(row[position])))
}

pub(super) fn students() -> (Spec, Vec<Table>) {
    let student = [["S1", "3.72"], ["S2", "2.34"], ["S3", "3.12"], ["S4", "4.00"]];
    let takes = [
        ["SC1", "S1", "Math", "93"],
        ["SC2", "S1", "Physics", "91"],
        ["SC3", "S1", "History", "85"],
        ["SC4", "S2", "CS", "78"],
        ["SC5", "S2", "Physics", "62"],
        ["SC6", "S2", "Religion", "42"],
        ["SC7", "S3", "History", "85"],
        ["SC8", "S3", "Religion", "75"],
        ["SC9", "S3", "Physics", "77"],
        ["SC10", "S4", "History", "98"],
        ["SC11", "S4", "Religion", "96"],
    ];
    let books = [
        ["SC1", "Discrete", "63"],
        ["SC2", "Calculus", "89"],
        ["SC2", "Dynamics", "42"],
        ["SC3", "Relg. H.", "33"],
        ["SC4", "Discrete", "65"],
        ["SC5", "Dynamics", "51"],
        ["SC6", "Yodaism", "38"],
        ["SC7", "Ottomans", "49"],
        ["SC8", "Yodaism", "39"],
        ["SC9", "Calculus", "84"],
        ["SC10", "Am. Hist", "54"],
    ];
    let course = column("course", Role::Quasi, &takes, 2).with_hierarchy(Hierarchy::from_paths(COURSES).unwrap());
    let book = column("book", Role::Quasi, &books, 1).with_hierarchy(Hierarchy::from_paths(BOOKS).unwrap());
    let tables = vec![
        table(
            "student",
            Some(0),
            vec![column("sid", Role::Key, &student, 0), column("gpa", Role::Sensitive, &student, 1)],
        ),
        table(
            "takes",
            None,
            vec![
                column("scid", Role::Key, &takes, 0),
                column("sid", Role::Key, &takes, 1),
                course,
                column("grade", Role::Sensitive, &takes, 3),
            ],
        ),
        table(
            "books",
            None,
            vec![column("scid", Role::Key, &books, 0), book, column("price", Role::Sensitive, &books, 2)],
        ),
    ];
    let spec = Spec::parse(
        r#"
        k = 2
        algorithm = "miracle"
        [tables.student]
        file = "student.csv"
        person = "sid"
        columns = { gpa = "sensitive" }
        [tables.takes]
        file = "takes.csv"
        key = "scid"
        parent = { table = "student", foreign_key = "sid" }
        columns = { course = "quasi", grade = "sensitive" }
        [tables.books]
        file = "books.csv"
        parent = { table = "takes", foreign_key = "scid" }
        columns = { book = "quasi", price = "sensitive" }
        "#,
    );
    (spec.unwrap(), tables)
}

/// The released rows of a table, sorted, every cell as text; keys by their originals.
fn rows(released: &ReleasedTable, original: &Table) -> Vec<Vec<String>> {
    let cell = |column: &kohort_model::ReleasedColumn, place: usize| match &column.cells {
        Cells::Recoded { labels, ids } => labels.get(ids[place]).to_owned(),
        Cells::Copied | Cells::Surrogate { .. } => {
            original.columns[column.source].cell(released.rows[place] as usize).unwrap().to_owned()
        }
    };
    let mut rows: Vec<Vec<String>> = (0..released.rows.len())
        .map(|place| released.columns.iter().map(|column| cell(column, place)).collect())
        .collect();
    rows.sort();
    rows
}

#[test]
fn the_students_of_the_paper_lose_what_the_paper_says() {
    for algorithm in [Algorithm::Miracle, Algorithm::MiracleX] {
        let (mut spec, tables) = students();
        spec.algorithm = algorithm;
        let schema = Schema::of(&spec, &tables).unwrap();
        let anonymized = anonymize_tables(&tables, &schema, &spec, &Silent).unwrap();
        assert_eq!(
            rows(&anonymized.release.tables[1], &tables[1]),
            [
                ["SC1", "S1", "Science", "93"],
                ["SC10", "S4", "History", "98"],
                ["SC11", "S4", "Religion", "96"],
                ["SC2", "S1", "Physics", "91"],
                ["SC3", "S1", "Social", "85"],
                ["SC4", "S2", "Science", "78"],
                ["SC5", "S2", "Physics", "62"],
                ["SC6", "S2", "Social", "42"],
                ["SC7", "S3", "History", "85"],
                ["SC8", "S3", "Religion", "75"],
            ]
        );
        assert_eq!(
            rows(&anonymized.release.tables[2], &tables[2]),
            [
                ["SC1", "Discrete", "63"],
                ["SC10", "Hist Book", "54"],
                ["SC2", "Dynamics", "42"],
                ["SC3", "Relg Book", "33"],
                ["SC4", "Discrete", "65"],
                ["SC5", "Dynamics", "51"],
                ["SC6", "Relg Book", "38"],
                ["SC7", "Hist Book", "49"],
            ]
        );
        assert!((anonymized.loss.lm - (37.0 / 6.0) / 22.0).abs() < 1e-12, "{}", anonymized.loss.lm);
        assert_eq!(anonymized.loss.dm, 8.0);
    }
}

/// A student: a number for the person, and per course taken one for it and one per book.
type Draw = (u8, Vec<(u8, Vec<u8>)>);

/// Students, what they take and books for it, drawn from few courses and books.
fn some_students(draws: &[Draw]) -> (Spec, Vec<Table>) {
    let (spec, originals) = students();
    let [courses, books] = [("Math", 0), ("Discrete", 1)].map(|(_, table)| {
        let column = if table == 0 { originals[1].column("course") } else { originals[2].column("book") };
        column.unwrap().clone()
    });
    let ages: Vec<String> = draws.iter().map(|(age, _)| (age % 9).to_string()).collect();
    let sids: Vec<String> = (0..draws.len()).map(|person| format!("S{person}")).collect();
    let (mut scid, mut sid, mut course, mut of_book, mut book) = (vec![], vec![], vec![], vec![], vec![]);
    for (person, (_, takes)) in draws.iter().enumerate() {
        for (of_course, of_books) in takes {
            for of_one in of_books {
                of_book.push(format!("SC{}", scid.len()));
                book.push(books.texts.get(u32::from(*of_one) % books.texts.len() as u32));
            }
            scid.push(format!("SC{}", scid.len()));
            sid.push(sids[person].clone());
            course.push(courses.texts.get(u32::from(*of_course) % courses.texts.len() as u32));
        }
    }
    fn column(name: &str, role: Role, cells: &[impl AsRef<str>]) -> Column {
        Column::from_cells(name, role, cells.iter().map(|cell| Some(cell.as_ref())))
    }
    let with_hierarchy_of = |column: Column, other: &Column| Column { hierarchy: other.hierarchy.clone(), ..column };
    let mut tables = vec![
        table("student", Some(0), vec![column("sid", Role::Key, &sids), column("gpa", Role::Quasi, &ages)]),
        table(
            "takes",
            None,
            vec![
                column("scid", Role::Key, &scid),
                column("sid", Role::Key, &sid),
                with_hierarchy_of(column("course", Role::Quasi, &course), &courses),
            ],
        ),
        table(
            "books",
            None,
            vec![column("scid", Role::Key, &of_book), with_hierarchy_of(column("book", Role::Quasi, &book), &books)],
        ),
    ];
    tables[0].columns[1].value_type = kohort_model::ValueType::Integer;
    let mut spec = spec;
    spec.tables[0].childless = kohort_model::spec::Childless::Keep;
    (spec, tables)
}

fn any_students(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Draw>> {
    let takes = prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..4)), 0..4);
    prop::collection::vec((any::<u8>(), takes), n)
}

/// Whether each member has one row at each node, below its row at the node above, covered by the node's box.
fn is_sound(cluster: &Representative, forest: &Forest, domains: &[&[Domain]]) -> bool {
    forest.kinds.iter().enumerate().all(|(kind, of_kind)| {
        let layer = &cluster.layers[kind];
        cluster.members.iter().enumerate().all(|(position, &member)| {
            let slots: Vec<_> = forest.slots(member, kind).collect();
            let slot_of = |layer: &representative::Layer, node: usize| {
                layer.slots[node * cluster.members.len() + position] as usize
            };
            let mut used: Vec<usize> = (0..layer.len()).map(|node| slot_of(layer, node)).collect();
            used.sort_unstable();
            used.dedup();
            used.len() == layer.len()
                && (0..layer.len()).all(|node| {
                    let row = slots[slot_of(layer, node)];
                    let hangs_well = of_kind.parent.is_none_or(|parent| {
                        slot_of(&cluster.layers[parent], layer.parents[node] as usize) == row.parent as usize
                    });
                    let bounds = &layer.bounds[node * of_kind.n_quasi..][..of_kind.n_quasi];
                    let covers = bounds.iter().zip(row.codes).all(|(&(lo, hi), &code)| lo <= code && code <= hi);
                    let shows =
                        bounds.iter().zip(domains[kind]).all(|(&(lo, hi), domain)| domain.hull(lo, hi) == (lo, hi));
                    hangs_well && covers && shows
                })
        })
    })
}

proptest! {
    #[test]
    fn joining_adds_the_loss_that_was_announced(draws in any_students(2..7)) {
        let (spec, tables) = some_students(&draws);
        let schema = Schema::of(&spec, &tables).unwrap();
        let grove = Grove::new(&tables, &schema, 0).unwrap();
        let forest = grove.forest(&tables, &schema, spec.keys);
        let domains: Vec<&[Domain]> = grove.encoded.iter().map(|encoded| encoded.domains.as_slice()).collect();
        for basis in [Basis::Subtree, Basis::Node] {
            let mut total = [0.0; 2];
            for (position, pairing) in [Pairing::Greedy, Pairing::Optimal].into_iter().enumerate() {
                let meter = Meter::new(&forest, &grove.encoded, basis, pairing, Counting::Yes);
                let mut scratch = Scratch::default();
                let mut cluster = Representative::of_person(&forest, 0, 0);
                for folded in 1..forest.len() as u32 {
                    let person = Representative::of_person(&forest, folded, 0);
                    let growth = meter.growth(&mut scratch, (&cluster, None), &person, f64::INFINITY);
                    let profile = meter.profile(&cluster);
                    let with_profile = meter.growth(&mut scratch, (&cluster, Some(&profile)), &person, f64::INFINITY);
                    let joined = cluster.join(&person, &meter, &mut scratch);
                    prop_assert!((growth - with_profile).abs() < 1e-4, "{} {}", growth, with_profile);
                    prop_assert!((cluster.loss() + person.loss() + growth - joined.loss()).abs() < 1e-4);
                    prop_assert!((cluster.n_cells() + person.n_cells() - joined.n_cells()).abs() < 1e-9);
                    prop_assert!(is_sound(&joined, &forest, &domains));
                    if folded == 1 {
                        total[position] = growth;
                    }
                    cluster = joined;
                }
            }
            // For the same two trees, if costs are those of whole subtrees, no pairing is cheaper than the optimal one.
            if basis == Basis::Subtree {
                prop_assert!(total[1] <= total[0] + 1e-9);
            }
        }
    }

    #[test]
    fn auto_is_never_worse_than_the_two_it_is_made_of(draws in any_students(4..30), k in 2u32..5) {
        let (mut spec, tables) = some_students(&draws);
        spec.k = k.min(draws.len() as u32);
        let schema = Schema::of(&spec, &tables).unwrap();
        let mut loss = |algorithm| {
            spec.algorithm = algorithm;
            anonymize_tables(&tables, &schema, &spec, &Silent).unwrap().loss.lm
        };
        let auto = loss(Algorithm::Auto);
        // Widths are kept in 32 bits while classes are looked for.
        prop_assert!(auto <= loss(Algorithm::Miracle) + 1e-6);
        prop_assert!(auto <= loss(Algorithm::MiracleX) + 1e-6);
    }

    #[test]
    fn a_limit_on_rows_left_out_is_kept_or_the_job_is_refused(
        draws in any_students(4..30),
        k in 2u32..5,
        limit in prop::sample::select(vec![0.0, 0.1, 0.3, 1.0]),
        algorithm in prop::sample::select(vec![Algorithm::Auto, Algorithm::Miracle, Algorithm::MiracleX]),
    ) {
        let (mut spec, tables) = some_students(&draws);
        spec.k = k.min(draws.len() as u32);
        spec.algorithm = algorithm;
        spec.tables[2].max_rows_left_out = Some(limit);
        let schema = Schema::of(&spec, &tables).unwrap();
        match anonymize_tables(&tables, &schema, &spec, &Silent) {
            Ok(anonymized) => prop_assert!(share_left_out(&tables, &anonymized, 2) <= limit + 1e-9),
            Err(AnonymizeError::RowsLeftOut { table, n_left_out, n_rows, .. }) => {
                prop_assert!(limit < 1.0 && table == "books");
                prop_assert_eq!(n_rows, tables[2].n_rows as u64);
                prop_assert!(n_left_out as f64 > limit * n_rows as f64);
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn large_sets_are_paired_in_parts_without_leaving_out_more(
        codes in prop::collection::vec((0u8..40, 0u8..7), 150..400),
        n_of_one in 130usize..200,
        pairing in prop::sample::select(vec![Pairing::Greedy, Pairing::Optimal]),
    ) {
        let n_of_one = n_of_one.min(codes.len() - 130);
        let (spec, tables) = two_with_many_rows(&codes, n_of_one);
        let schema = Schema::of(&spec, &tables).unwrap();
        let grove = Grove::new(&tables, &schema, 0).unwrap();
        let forest = grove.forest(&tables, &schema, spec.keys);
        prop_assume!(forest.len() == 2);
        let domains: Vec<&[Domain]> = grove.encoded.iter().map(|encoded| encoded.domains.as_slice()).collect();
        let meter = Meter::new(&forest, &grove.encoded, Basis::Subtree, pairing, Counting::No);
        let mut scratch = Scratch::default();
        let [one, other] = [0, 1].map(|folded| Representative::of_person(&forest, folded, 0));
        let growth = meter.growth(&mut scratch, (&one, None), &other, f64::INFINITY);
        let joined = one.join(&other, &meter, &mut scratch);
        prop_assert!((growth - joined.loss()).abs() < 1e-3, "{} {}", growth, joined.loss());
        prop_assert!(is_sound(&joined, &forest, &domains));
        prop_assert_eq!(joined.layers[1].len(), n_of_one.min(codes.len() - n_of_one));
    }
}

/// Two persons with rows of two ordered columns. Nearly all rows differ, because a third column numbers them.
fn two_with_many_rows(codes: &[(u8, u8)], n_of_one: usize) -> (Spec, Vec<Table>) {
    let cells: Vec<[String; 4]> = (0..codes.len())
        .map(|row| {
            let person = if row < n_of_one { "a" } else { "b" };
            [person.to_owned(), codes[row].0.to_string(), codes[row].1.to_string(), (row * 7919 % 1000).to_string()]
        })
        .collect();
    let column = |name: &str, role: Role, position: usize| {
        let mut column = Column::from_cells(name, role, cells.iter().map(|row| Some(row[position].as_str())));
        if role == Role::Quasi {
            column.value_type = kohort_model::ValueType::Integer;
        }
        column
    };
    let person = Column::from_cells("id", Role::Key, ["a", "b"].map(Some));
    let visits = [("id", Role::Key), ("day", Role::Quasi), ("hour", Role::Quasi), ("room", Role::Quasi)];
    let visits = (0..).zip(visits).map(|(position, (name, role))| column(name, role, position)).collect();
    let spec = Spec::parse(
        "k = 2\n[tables.people]\nfile = \"p\"\nperson = \"id\"\ncolumns = { id = \"key\" }\n[tables.visits]\nfile = \"v\"\n\
         parent = { table = \"people\", foreign_key = \"id\" }\n\
         columns = { day = \"quasi\", hour = \"quasi\", room = \"quasi\" }\n",
    );
    (spec.unwrap(), vec![table("people", Some(0), vec![person]), table("visits", None, visits)])
}

fn share_left_out(tables: &[Table], anonymized: &AnonymizedTables, table: usize) -> f64 {
    let n_left_out = tables[table].n_rows - anonymized.release.tables[table].rows.len();
    n_left_out as f64 / tables[table].n_rows.max(1) as f64
}

/// Few policies have claims, and policies have many cells, so the loss alone would leave out most claims.
#[test]
fn most_claims_of_few_policies_are_kept_if_a_limit_asks_for_it() {
    let n_policies = 1200u32;
    let drawn = |policy: u32, salt: u32| (policy.wrapping_mul(2_654_435_761).rotate_left(salt) >> 7) % 97;
    let person: Vec<String> = (0..n_policies).map(|policy| format!("p{policy}")).collect();
    let claims: Vec<u32> = (0..n_policies).filter(|&policy| drawn(policy, 3) < 14).collect();
    fn column(name: &str, role: Role, cells: &[String]) -> Column {
        let mut column = Column::from_cells(name, role, cells.iter().map(|cell| Some(cell.as_str())));
        if role == Role::Quasi {
            column.value_type = kohort_model::ValueType::Integer;
        }
        column
    }
    let mut columns = vec![column("id", Role::Key, &person)];
    for salt in 0..5 {
        let cells: Vec<String> = (0..n_policies).map(|policy| (drawn(policy, 5 * salt) % 30).to_string()).collect();
        columns.push(column(&format!("q{salt}"), Role::Quasi, &cells));
    }
    let of_claims = |cell: &dyn Fn(u32) -> String| claims.iter().map(|&policy| cell(policy)).collect::<Vec<_>>();
    let tables = [
        table("policy", Some(0), columns),
        table(
            "claim",
            None,
            vec![
                column("id", Role::Key, &of_claims(&|policy| person[policy as usize].clone())),
                column("kind", Role::Quasi, &of_claims(&|policy| (drawn(policy, 11) % 9).to_string())),
            ],
        ),
    ];
    let quasi = "q0 = \"quasi\", q1 = \"quasi\", q2 = \"quasi\", q3 = \"quasi\", q4 = \"quasi\"";
    let mut spec = Spec::parse(&format!(
        "k = 5\n[tables.policy]\nfile = \"p\"\nperson = \"id\"\nchildless = \"keep\"\ncolumns = {{ {quasi} }}\n\
         [tables.claim]\nfile = \"c\"\nparent = {{ table = \"policy\", foreign_key = \"id\" }}\n\
         columns = {{ kind = \"quasi\" }}\n"
    ))
    .unwrap();
    let mut release = |limit| {
        spec.tables[1].max_rows_left_out = limit;
        anonymize_tables(&tables, &Schema::of(&spec, &tables).unwrap(), &spec, &Silent).unwrap()
    };
    let (auto, plain) = (release(Some(MAX_ROWS_LEFT_OUT)), release(None));
    assert!(share_left_out(&tables, &auto, 1) <= MAX_ROWS_LEFT_OUT);
    // Classes follow the number of claims, so look for somebody with too rare a number.
    let mut n_claims = vec![0u32; n_policies as usize];
    auto.release.tables[1].rows.iter().for_each(|&row| n_claims[claims[row as usize] as usize] += 1);
    let policies = &auto.release.tables[0];
    let mut looks: BTreeMap<Vec<String>, u32> = BTreeMap::new();
    for (place, &policy) in policies.rows.iter().enumerate() {
        let labels = policies.columns.iter().filter_map(|column| match &column.cells {
            Cells::Recoded { labels, ids } => Some(labels.get(ids[place]).to_owned()),
            Cells::Copied | Cells::Surrogate { .. } => None,
        });
        *looks.entry(labels.chain([n_claims[policy as usize].to_string()]).collect()).or_default() += 1;
    }
    assert!(looks.len() > 100 && looks.values().all(|&n_persons| n_persons >= 5), "{looks:?}");
    assert!(share_left_out(&tables, &plain, 1) > 4.0 * MAX_ROWS_LEFT_OUT);
    assert!(auto.notes.iter().all(|note| note.code() != "rows_left_out"), "{:?}", auto.notes);
    assert!(plain.notes.iter().any(|note| note.code() == "rows_left_out"), "{:?}", plain.notes);
}

#[test]
fn nodes_cost_fewer_evaluations_than_subtrees() {
    let draws: Vec<Draw> = (0..40u8)
        .map(|person| (person, (0..5).map(|course| (person / 3 + course, vec![course, person, 3, 5])).collect()))
        .collect();
    let (mut spec, tables) = some_students(&draws);
    // One open cluster at a time, so that both algorithms compare each person with one.
    (spec.k, spec.clustering.threshold, spec.clustering.cluster_limit) = (20, Some(1.0), Some(1));
    let schema = Schema::of(&spec, &tables).unwrap();
    let mut counts = |algorithm| {
        spec.algorithm = algorithm;
        anonymize_tables_with_counts(&tables, &schema, &spec, &Silent).unwrap().1
    };
    let (subtrees, nodes) = (counts(Algorithm::Miracle), counts(Algorithm::MiracleX));
    assert!(subtrees > 3 * nodes, "{subtrees} {nodes}");
}

#[test]
fn leftovers_that_lose_less_alone_are_left_out_where_the_spec_allows_it() {
    let mut draws: Vec<Draw> = (0..8).map(|_| (0, vec![(0, vec![0])])).collect();
    draws.push((8, vec![(3, vec![5]), (4, vec![6]), (2, vec![3])]));
    let (mut spec, tables) = some_students(&draws);
    spec.k = 3;
    let schema = Schema::of(&spec, &tables).unwrap();
    let merged = anonymize_tables(&tables, &schema, &spec, &Silent).unwrap();
    assert_eq!(merged.persons, Persons { n_in: 9, n_out: 9, suppressed: 0 });
    (spec.leftovers, spec.max_suppressed) = (kohort_model::spec::Leftovers::Suppress, 0.2);
    let suppressed = anonymize_tables(&tables, &schema, &spec, &Silent).unwrap();
    assert_eq!(suppressed.persons, Persons { n_in: 9, n_out: 8, suppressed: 1 });
    assert_eq!(suppressed.release.tables[1].rows, (0..8).collect::<Vec<u32>>());
    assert!(suppressed.loss.lm < merged.loss.lm);
}

#[test]
fn a_value_that_all_rows_of_one_look_hold_is_not_released() {
    let (mut spec, mut tables) = students();
    let l = |column: &str| Requirement::DistinctL { column: column.to_owned(), l: 2 };
    spec.tables[1].columns[1].requirements = vec![l("grade")];
    assert_eq!(spec.tables[1].columns[1].name, "grade");
    let schema = Schema::of(&spec, &tables).unwrap();
    let n_released = |tables: &[Table]| {
        let anonymized = anonymize_tables(tables, &schema, &spec, &Silent).unwrap();
        anonymized.release.tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>()
    };
    assert_eq!(n_released(&tables), [4, 10, 8]);
    // Everybody has the same grade everywhere: nothing of the table can be shown, nor of what hangs off it.
    let grades = &mut tables[1].columns[3];
    let first = grades.ids[0];
    grades.ids.fill(first);
    assert_eq!(n_released(&tables), [4, 0, 0]);
}
