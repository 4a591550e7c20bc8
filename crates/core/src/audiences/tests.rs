//! Butterflies on the paper's examples, on tables with one answer, and on random ones beside counting by hand.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Audience, Cells, Coalition, Column, Hierarchy, NULL, Role, Silent, ValueType};
use proptest::prelude::*;

use super::*;

const VEHICLES: &str = "Red Truck;Truck;*\nBlack Truck;Truck;*\nWhite Sedan;Sedan;*\nGreen Sedan;Sedan;*\n";
const OCCUPATIONS: &str = "Dentist;Medical;*\nFamily doctor;Medical;*\nBanker;Finance;*\nMortgage broker;Finance;*\n";

fn table(names: &[&str], rows: &[Vec<Option<String>>]) -> Table {
    let column = |(position, name): (usize, &&str)| {
        Column::from_cells(name, Role::Quasi, rows.iter().map(|row| row[position].as_deref()))
    };
    let columns = names.iter().enumerate().map(column).collect();
    Table { name: "t".to_owned(), columns, n_rows: rows.len(), person: None }
}

fn of_texts(names: &[&str], rows: &[&str]) -> Table {
    let cells = |row: &&str| row.split(',').map(|cell| Some(cell.to_owned())).collect();
    table(names, &rows.iter().map(cells).collect::<Vec<_>>())
}

fn audience(columns: &[&str], k: u32) -> Audience {
    let quasi: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
    Audience { name: quasi.join("+"), quasi, requirements: vec![Requirement::K(k)] }
}

fn audiences(each: &[(&[&str], u32)]) -> Audiences {
    Audiences::new(each.iter().map(|(columns, k)| audience(columns, *k)).collect())
}

fn spec(algorithm: Algorithm) -> Spec {
    Spec { algorithm, ..Spec::new(1) }
}

fn release(table: &Table, audiences: &Audiences, algorithm: Algorithm) -> AnonymizedForAudiences {
    by(table, audiences, algorithm, Method::default())
}

/// A release by a method, made on rayon's threads like that of a job.
fn by(table: &Table, audiences: &Audiences, algorithm: Algorithm, method: Method) -> AnonymizedForAudiences {
    rayon::scope(|_| anonymize_audiences_by(table, &spec(algorithm), audiences, method, &Silent)).unwrap()
}

/// The released rows with their source row, a text per column.
fn rows(table: &Table, made: &AnonymizedForAudiences) -> Vec<(u32, Vec<Option<String>>)> {
    let released = &made.anonymized.release.tables[0];
    let cell = |column: &kohort_model::ReleasedColumn, position: usize| match &column.cells {
        Cells::Recoded { labels, ids } => (ids[position] != NULL).then(|| labels.get(ids[position]).to_owned()),
        _ => table.columns[column.source].cell(released.rows[position] as usize).map(str::to_owned),
    };
    let row = |position: usize| released.columns.iter().map(|column| cell(column, position)).collect();
    released.rows.iter().enumerate().map(|(position, &source)| (source, row(position))).collect()
}

/// The fewest persons who look the same in some columns, counted from the released texts.
fn smallest(table: &Table, made: &AnonymizedForAudiences, columns: &[String]) -> usize {
    let released = &made.anonymized.release.tables[0];
    let positions: Vec<usize> =
        columns.iter().map(|name| released.columns.iter().position(|column| column.name == *name).unwrap()).collect();
    let mut classes: BTreeMap<Vec<Option<String>>, BTreeSet<u32>> = BTreeMap::new();
    for (source, cells) in rows(table, made) {
        let person = table.person_column().map_or(source, |persons| persons.ids[source as usize]);
        let seen = positions.iter().map(|&position| cells[position].clone()).collect();
        classes.entry(seen).or_default().insert(person);
    }
    classes.values().map(BTreeSet::len).min().unwrap_or(usize::MAX)
}

fn satisfies_all(table: &Table, made: &AnonymizedForAudiences, audiences: &Audiences) -> bool {
    let union: Vec<String> = audiences.union().iter().map(|&column| column.to_owned()).collect();
    audiences.each.iter().all(|audience| smallest(table, made, &audience.quasi) >= audience.k() as usize)
        && audiences
            .coalitions
            .first()
            .and_then(Coalition::k)
            .is_none_or(|k| smallest(table, made, &union) >= k as usize)
}

fn penalty(made: &AnonymizedForAudiences) -> f64 {
    made.saved.release.uncertainty_penalty()
}

#[test]
fn four_accidents_become_one_butterfly() {
    let mut accidents = of_texts(
        &["occupation", "age", "vehicle", "postcode", "faulty"],
        &[
            "Dentist,30,Red Truck,31043,No",
            "Family doctor,30,White Sedan,31043,Yes",
            "Banker,30,Green Sedan,31043,No",
            "Mortgage broker,30,Black Truck,31043,No",
        ],
    );
    accidents.columns[0] = accidents.columns[0].clone().with_hierarchy(Hierarchy::from_paths(OCCUPATIONS).unwrap());
    accidents.columns[2] = accidents.columns[2].clone().with_hierarchy(Hierarchy::from_paths(VEHICLES).unwrap());
    accidents.columns[4].role = Role::Sensitive;
    let both = audiences(&[(&["age", "vehicle", "postcode"], 2), (&["occupation", "age", "postcode"], 2)]);
    for algorithm in [Algorithm::Mondrian, Algorithm::Auto, Algorithm::Cluster, Algorithm::TopDown, Algorithm::Datafly]
    {
        let made = release(&accidents, &both, algorithm);
        let mut shown: Vec<(u32, String)> = rows(&accidents, &made)
            .into_iter()
            .map(|(source, cells)| (source, cells.into_iter().flatten().collect::<Vec<_>>().join(" ")))
            .collect();
        shown.sort();
        let shown: Vec<&str> = shown.iter().map(|(_, cells)| cells.as_str()).collect();
        let expected = [
            "Medical 30 Truck 31043 No",
            "Medical 30 Sedan 31043 Yes",
            "Finance 30 Sedan 31043 No",
            "Finance 30 Truck 31043 No",
        ];
        assert_eq!(shown, expected);
        assert_eq!((made.saved.shape, made.saved.release.common), ("butterflies", 0.0));
        assert_eq!(made.saved.in_butterflies, 1.0);
    }
}

#[test]
fn a_table_that_satisfies_every_audience_is_left_as_it_is() {
    let pairs = of_texts(&["a", "b", "c"], &["a1,b,c1", "a1,b,c2", "a2,b,c1", "a2,b,c3", "a3,b,c2", "a3,b,c3"]);
    let both = audiences(&[(&["a", "b"], 2), (&["b", "c"], 2)]);
    let made = release(&pairs, &both, Algorithm::Auto);
    assert_eq!((made.saved.shape, penalty(&made)), ("unchanged", 0.0));
    let together = both.with_collusion_k(Some(2));
    let made = release(&pairs, &together, Algorithm::Auto);
    assert_ne!(made.saved.shape, "unchanged");
    assert!(satisfies_all(&pairs, &made, &together));
}

#[test]
fn all_combinations_of_two_values_satisfy_every_audience_but_not_all_together() {
    for (k, copies) in [(2, 1), (4, 2), (5, 3)] {
        let combinations = (0..8 * copies).map(|row| {
            let bit = |position: usize| Some(format!("{}", row >> position & 1));
            (0..3).map(bit).collect::<Vec<_>>()
        });
        let table = table(&["a", "b", "c"], &combinations.collect::<Vec<_>>());
        let three = audiences(&[(&["a", "b"], k), (&["b", "c"], k), (&["a", "c"], k)]);
        let made = release(&table, &three, Algorithm::Mondrian);
        assert_eq!(made.saved.shape, "unchanged");
        assert!(smallest(&table, &made, &["a", "b", "c"].map(str::to_owned)) < k as usize);
    }
}

#[test]
fn disjoint_columns_are_all_wings() {
    let rows = (0..12).map(|row| vec![Some(format!("{row:02}")), Some(format!("{:02}", row * 5 % 12))]);
    let mut numbers = table(&["a", "b"], &rows.collect::<Vec<_>>());
    numbers.columns = numbers.columns.into_iter().map(|column| column.typed(ValueType::Integer)).collect();
    let apart = audiences(&[(&["a"], 2), (&["b"], 3)]);
    // Medians cut as they would for releases apart.
    let method = Method { narrow: Narrow::No, ..Method::default() };
    let of_bodies = anonymize_audiences_by(&numbers, &spec(Algorithm::Mondrian), &apart, method, &Silent).unwrap();
    assert_eq!(penalty(&of_bodies), of_bodies.saved.separate.uncertainty_penalty());
    assert!(penalty(&of_bodies) < of_bodies.saved.union.uncertainty_penalty());
    // Pairs of neighbours in one column and threes in the other lose least: 12 rows lose 1/11 and 2/11 each.
    let made = release(&numbers, &apart, Algorithm::Mondrian);
    assert!(satisfies_all(&numbers, &made, &apart));
    assert!((penalty(&made) - 36.0 / 11.0).abs() < 1e-9);
}

#[test]
fn an_audience_inside_of_another_that_asks_more_is_heard() {
    let rows = (0..24).map(|row: u32| vec![Some(format!("{}", row % 5)), Some(format!("{:02}", row * 7 % 24))]);
    let mut numbers = table(&["a", "b"], &rows.collect::<Vec<_>>());
    numbers.columns = numbers.columns.into_iter().map(|column| column.typed(ValueType::Integer)).collect();
    let stricter_inside = audiences(&[(&["a"], 9), (&["a", "b"], 2)]);
    let made = release(&numbers, &stricter_inside, Algorithm::Mondrian);
    assert!(satisfies_all(&numbers, &made, &stricter_inside));
    let laxer_inside = audiences(&[(&["a"], 2), (&["a", "b"], 4)]);
    let alone = audiences(&[(&["a", "b"], 4)]);
    let [with, without] = [&laxer_inside, &alone].map(|asked| rows_of(&numbers, asked));
    assert_eq!(with, without);
}

fn rows_of(table: &Table, asked: &Audiences) -> Vec<(u32, Vec<Option<String>>)> {
    rows(table, &release(table, asked, Algorithm::Mondrian))
}

#[test]
fn sensitive_values_are_diverse_for_every_audience() {
    let rows = (0..60u32).map(|row| {
        let cells = [row % 4, row * 7 % 30, row * 11 % 29, row / 3 % 3];
        cells.iter().map(|cell| Some(format!("{cell:02}"))).collect::<Vec<_>>()
    });
    let mut wards = table(&["a", "b", "c", "illness"], &rows.collect::<Vec<_>>());
    wards.columns[3].role = Role::Sensitive;
    for column in &mut wards.columns[..3] {
        *column = column.clone().typed(ValueType::Integer);
    }
    let mut both = audiences(&[(&["a", "b"], 3), (&["a", "c"], 4)]);
    for audience in &mut both.each {
        audience.requirements.push(Requirement::DistinctL { column: "illness".to_owned(), l: 3 });
    }
    let made = release(&wards, &both, Algorithm::Auto);
    assert!(satisfies_all(&wards, &made, &both));
    for columns in [[0, 1], [0, 2]] {
        let mut illnesses: BTreeMap<Vec<Option<String>>, BTreeSet<Option<String>>> = BTreeMap::new();
        for (_, cells) in self::rows(&wards, &made) {
            illnesses.entry(columns.map(|column| cells[column].clone()).to_vec()).or_default().insert(cells[3].clone());
        }
        assert!(illnesses.values().all(|distinct| distinct.len() >= 3));
    }
}

#[test]
fn full_domain_and_partitioners_for_several_tables_are_refused() {
    let pairs = of_texts(&["a", "b"], &["1,2", "1,3"]);
    let both = audiences(&[(&["a"], 2), (&["b"], 2)]);
    let refused = |algorithm| anonymize_audiences(&pairs, &spec(algorithm), &both, &Silent).unwrap_err();
    for (algorithm, kind) in
        [(Algorithm::FullDomain, "for several audiences"), (Algorithm::Miracle, "for one table in this version")]
    {
        assert_eq!(refused(algorithm), AnonymizeError::Unavailable { algorithm, kind });
    }
}

const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const PATHS: &str = "0;x;*\n1;x;*\n2;x;*\n3;y;*\n4;y;*\n5;z;*\n6;z;*\n7;z;*\n";

/// Codes to a table: numbers, texts in a hierarchy and plain texts by turns; 9 is null.
fn coded(rows: &[Vec<u32>], persons: Option<&[u32]>) -> Table {
    let texts: Vec<Vec<Option<String>>> =
        rows.iter().map(|row| row.iter().map(|&code| (code < 8).then(|| code.to_string())).collect()).collect();
    let mut table = table(&NAMES[..rows[0].len()], &texts);
    for (position, column) in table.columns.iter_mut().enumerate() {
        *column = match position % 3 {
            0 => column.clone().typed(ValueType::Integer),
            1 => column.clone().with_hierarchy(Hierarchy::from_paths(PATHS).unwrap()),
            _ => column.clone(),
        };
    }
    if let Some(persons) = persons {
        let names: Vec<String> = persons.iter().map(u32::to_string).collect();
        let named = names.iter().map(|name| Some(name.as_str()));
        table.columns.push(Column::from_cells("id", Role::Key, named));
        table.person = Some(table.columns.len() - 1);
    }
    table
}

prop_compose! {
    fn random_rows(n_rows: std::ops::Range<usize>, n_columns: usize)(
        rows in prop::collection::vec(prop::collection::vec(0u32..10, n_columns), n_rows),
    ) -> Vec<Vec<u32>> {
        rows
    }
}

/// Audiences by the bits of their columns; every column is somebody's.
fn audiences_of_bits(bits: &[(u32, u32)], n_columns: usize, collusion_k: Option<u32>) -> Audiences {
    let names =
        |bits: u32| (0..n_columns).filter(|column| bits >> column & 1 == 1).map(|column| NAMES[column]).collect();
    let mut each: Vec<Audience> = bits
        .iter()
        .map(|&(bits, k)| (names(bits), k))
        .filter(|(columns, _): &(Vec<&str>, u32)| !columns.is_empty())
        .map(|(columns, k)| audience(&columns, k))
        .collect();
    let rest: Vec<&str> = NAMES[..n_columns]
        .iter()
        .copied()
        .filter(|name| !each.iter().any(|one| one.quasi.contains(&(*name).to_owned())))
        .collect();
    if !rest.is_empty() {
        each.push(audience(&rest, 2));
    }
    Audiences::new(each).with_collusion_k(collusion_k)
}

proptest! {
    #![proptest_config(crate::random_cases(96))]

    #[test]
    fn every_release_satisfies_every_audience_and_loses_no_more_than_the_union(
        rows in random_rows(6..40, 5),
        bits in prop::collection::vec((1u32..32, 1u32..5), 2..5),
        collusion_k in prop::option::of(2u32..4),
        algorithm in prop::sample::select(vec![Algorithm::Mondrian, Algorithm::Auto, Algorithm::Cluster]),
    ) {
        let table = coded(&rows, None);
        let asked = audiences_of_bits(&bits, 5, collusion_k);
        let mut without_narrowing = f64::INFINITY;
        for (start, narrow) in
            [(Start::Union, Narrow::No), (Start::UnionAndBody, Narrow::No), (Start::UnionAndBody, Narrow::Yes)]
        {
            let method = Method { start, shape: Shape::Nested, narrow };
            let made = by(&table, &asked, algorithm, method);
            prop_assert!(satisfies_all(&table, &made, &asked));
            prop_assert!(penalty(&made) <= made.saved.union.uncertainty_penalty() + 1e-9);
            prop_assert!((penalty(&made) - made.anonymized.loss.uncertainty_penalty).abs() < 1e-9);
            prop_assert!(made.saved.least <= penalty(&made) + 1e-9);
            if narrow == Narrow::Yes {
                prop_assert!(penalty(&made) <= without_narrowing + 1e-9);
            }
            without_narrowing = penalty(&made);
        }
    }

    #[test]
    fn asking_for_more_of_all_together_never_loses_less(
        rows in random_rows(6..40, 5),
        bits in prop::collection::vec((1u32..32, 1u32..5), 2..5),
        algorithm in prop::sample::select(vec![Algorithm::Mondrian, Algorithm::Auto]),
    ) {
        let table = coded(&rows, None);
        let [without, with] =
            [None, Some(2)].map(|k| penalty(&release(&table, &audiences_of_bits(&bits, 5, k), algorithm)));
        prop_assert!(without <= with + 1e-9, "{} without a k for all together, {} with it", without, with);
    }

    #[test]
    fn rows_that_satisfy_everybody_as_they_are_cost_nothing(
        rows in prop::collection::vec(prop::collection::vec(0u32..3, 4), 20..60),
        bits in prop::collection::vec((1u32..16, 2u32..4), 2..4),
        collusion_k in prop::option::of(2u32..3),
    ) {
        let asked = audiences_of_bits(&bits, 4, collusion_k);
        let union: Vec<String> = NAMES[..4].iter().map(|&name| name.to_owned()).collect();
        let each = asked.each.iter().map(|audience| (audience.quasi.clone(), audience.k()));
        let views: Vec<(Vec<String>, u32)> = each.chain(collusion_k.map(|k| (union, k))).collect();
        let mut kept = rows.clone();
        loop {
            let n_before = kept.len();
            for (known, k) in &views {
                let look = |row: &Vec<u32>| -> Vec<u32> {
                    (0..4).filter(|&column| known.contains(&NAMES[column].to_owned())).map(|column| row[column]).collect()
                };
                let mut counts: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
                kept.iter().for_each(|row| *counts.entry(look(row)).or_default() += 1);
                kept.retain(|row| counts[&look(row)] >= *k);
            }
            if kept.len() == n_before {
                break;
            }
        }
        let n_others = rows.len() - kept.len();
        let most = views.iter().map(|(_, k)| *k as usize).max().unwrap_or(1);
        prop_assume!(n_others == 0 || n_others >= most);
        let made = release(&coded(&rows, None), &asked, Algorithm::Mondrian);
        prop_assert!(penalty(&made) <= 4.0 * n_others as f64 + 1e-9);
    }

    #[test]
    fn nothing_loses_less_than_the_best_of_all_releases(
        rows in prop::collection::vec(prop::collection::vec(0u32..3, 3), 4..6),
        bits in prop::collection::vec((1u32..8, 1u32..4), 2..4),
        collusion_k in prop::option::of(2u32..3),
    ) {
        let asked = audiences_of_bits(&bits, 3, collusion_k);
        let mut table = coded(&rows, None);
        for column in &mut table.columns {
            *column = Column::from_cells(&column.name, Role::Quasi, column.ids.iter().map(|&id| Some(column.texts.get(id))));
        }
        let mut views: Vec<(Vec<usize>, u32)> = Vec::new();
        for audience in &asked.each {
            let known = (0..3).filter(|&column| audience.quasi.contains(&NAMES[column].to_owned()));
            views.push((known.collect(), audience.k()));
        }
        views.extend(collusion_k.map(|k| (vec![0, 1, 2], k)));
        let varies: Vec<bool> = (0..3).map(|column| rows.iter().any(|row| row[column] != rows[0][column])).collect();
        let mut least = f64::INFINITY;
        // Three bits per row: which of its cells are hidden.
        for hidden in 0u32..1 << (3 * rows.len()) {
            let is_hidden = |row: usize, column: usize| hidden >> (3 * row + column) & 1 == 1;
            let holds = |(known, k): &(Vec<usize>, u32)| {
                let look = |row: usize| -> Vec<Option<u32>> {
                    known.iter().map(|&column| (!is_hidden(row, column)).then_some(rows[row][column])).collect()
                };
                let mut counts: BTreeMap<Vec<Option<u32>>, u32> = BTreeMap::new();
                (0..rows.len()).for_each(|row| *counts.entry(look(row)).or_default() += 1);
                counts.values().all(|count| count >= k)
            };
            let cells = (0..rows.len()).flat_map(|row| (0..3).map(move |column| (row, column)));
            let loss = cells.filter(|&(row, column)| varies[column] && is_hidden(row, column)).count() as f64;
            if loss < least && views.iter().all(holds) {
                least = loss;
            }
        }
        let made = release(&table, &asked, Algorithm::Auto);
        prop_assert!(penalty(&made) >= least - 1e-9);
        prop_assert!(made.saved.least <= least + 1e-9, "bound {}, best {}", made.saved.least, least);
    }

    #[test]
    fn placed_rows_satisfy_everybody(
        rows in random_rows(10..60, 5),
        bits in prop::collection::vec((1u32..32, 1u32..5), 2..5),
        collusion_k in prop::option::of(2u32..4),
        n_out in 0usize..4,
    ) {
        let table = coded(&rows, None);
        let encoded = Encoded::new(&table, &[0, 1, 2, 3, 4]).unwrap();
        let kept: Vec<u32> = (0..rows.len() as u32).collect();
        let compile = |requirements: &[Requirement]| Rules::compile(&table, requirements, &kept);
        let AsksOfAudiences { asks, coalitions, .. } =
            AsksOfAudiences::new(&table, &audiences_of_bits(&bits, 5, collusion_k), &encoded).unwrap();
        let demands: Vec<Demand> =
            asks.iter().chain(&coalitions).map(|ask| Demand::new(ask, &compile).unwrap()).collect();
        let atoms = Atoms::of_rows(&encoded.domains, encoded.fold(&kept));
        let mut views = views::Views::empty(&atoms, &demands);
        layers::Layers::new(&atoms).place(&mut views, 100_000, &Silent);
        let placed: Vec<u32> = atoms.all().into_iter().filter(|&row| views.is_placed(row)).take(n_out).collect();
        for out in [&[][..], &placed] {
            views.take_out(out);
            for demand in &demands {
                let mut counts: BTreeMap<Vec<(u32, u32)>, u32> = BTreeMap::new();
                for row in atoms.all().into_iter().filter(|&row| views.is_placed(row)) {
                    let shown = views.shown(row);
                    prop_assert!(shown.iter().zip(atoms.rows.cells(row)).all(|(&(lo, hi), &code)| lo <= code && code <= hi));
                    let look = demand.columns.iter().map(|&column| shown[column]).collect();
                    *counts.entry(look).or_default() += atoms.rows.weight(row);
                }
                prop_assert!(counts.values().all(|&count| count >= demand.rules.k()));
            }
        }
    }

    #[test]
    fn the_order_of_columns_changes_nothing(
        rows in random_rows(20..60, 5), turn in 1usize..5, collusion_k in prop::option::of(2u32..4),
        algorithm in prop::sample::select(vec![Algorithm::Mondrian, Algorithm::Auto]),
    ) {
        let asked = audiences(&[(&["a", "b", "c"], 3), (&["c", "d"], 4), (&["a", "e"], 3)]).with_collusion_k(collusion_k);
        let table = coded(&rows, None);
        let mut turned = table.clone();
        turned.columns.rotate_left(turn);
        let shown = |table: &Table| {
            let made = release(table, &asked, algorithm);
            let names: Vec<String> =
                made.anonymized.release.tables[0].columns.iter().map(|column| column.name.clone()).collect();
            let named = |(source, cells): (u32, Vec<Option<String>>)| {
                (source, names.iter().cloned().zip(cells).collect::<BTreeMap<_, _>>())
            };
            let mut rows: Vec<_> = self::rows(table, &made).into_iter().map(named).collect();
            rows.sort();
            (rows, made.saved)
        };
        prop_assert_eq!(shown(&table), shown(&turned));
    }

    #[test]
    fn persons_with_several_rows_count_once_for_every_audience(
        rows in random_rows(12..40, 4),
        persons in prop::collection::vec(0u32..12, 40),
        illnesses in prop::collection::vec(0u32..4, 40),
        bits in prop::collection::vec((1u32..16, 1u32..4), 2..4),
        collusion_k in prop::option::of(2u32..3),
    ) {
        let persons = &persons[..rows.len()];
        prop_assume!(persons.iter().collect::<BTreeSet<_>>().len() >= 4);
        let mut table = coded(&rows, Some(persons));
        let ill: Vec<String> = illnesses[..rows.len()].iter().map(u32::to_string).collect();
        table.columns.push(Column::from_cells("ill", Role::Sensitive, ill.iter().map(|text| Some(text.as_str()))));
        let mut asked = audiences_of_bits(&bits, 4, collusion_k);
        for audience in &mut asked.each {
            audience.requirements.push(Requirement::Alpha { column: "ill".to_owned(), alpha: 0.7 });
        }
        let made = anonymize_audiences(&table, &spec(Algorithm::Mondrian), &asked, &Silent);
        prop_assume!(!matches!(made, Err(AnonymizeError::TooFrequent { .. })));
        let made = made.unwrap();
        prop_assert!(satisfies_all(&table, &made, &asked));
        for audience in &asked.each {
            // Per class the persons, and those with each illness.
            let mut classes: BTreeMap<Vec<Option<String>>, BTreeMap<u32, BTreeSet<u32>>> = BTreeMap::new();
            for (source, cells) in self::rows(&table, &made) {
                let known = NAMES.iter().zip(&cells).filter(|(name, _)| audience.quasi.iter().any(|other| other == *name));
                let class = classes.entry(known.map(|(_, cell)| cell.clone()).collect()).or_default();
                for group in [u32::MAX, illnesses[source as usize]] {
                    class.entry(group).or_default().insert(persons[source as usize]);
                }
            }
            for class in classes.values() {
                let n_persons = class[&u32::MAX].len() as f64;
                prop_assert!(class.iter().all(|(&ill, who)| ill == u32::MAX || who.len() as f64 <= 0.7 * n_persons + 1e-9));
            }
        }
    }

    #[test]
    fn nested_butterflies_lose_no_more_than_super_butterflies(rows in random_rows(20..60, 7), k in 2u32..5) {
        // The seven columns and four audiences of example 3.
        let asked = audiences(&[(&["a", "b", "c"], k), (&["c", "d", "e"], k), (&["b", "d", "f"], k), (&["b", "g"], k)]);
        let table = coded(&rows, None);
        let [nested, flat] = [Shape::Nested, Shape::Super].map(|shape| {
            let method = Method { start: Start::UnionAndBody, shape, narrow: Narrow::No };
            by(&table, &asked, Algorithm::Mondrian, method)
        });
        prop_assert!(satisfies_all(&table, &nested, &asked) && satisfies_all(&table, &flat, &asked));
        prop_assert!(penalty(&nested) <= penalty(&flat) + 1e-9);
        prop_assert!(penalty(&flat) <= flat.saved.union.uncertainty_penalty() + 1e-9);
    }

    #[test]
    fn neither_the_order_of_rows_nor_threads_change_what_is_shown(
        rows in random_rows(30..60, 5),
        turn in 1usize..29,
        collusion_k in prop::option::of(2u32..4),
    ) {
        let asked = audiences(&[(&["a", "b", "c"], 3), (&["c", "d"], 4), (&["a", "e"], 3)]).with_collusion_k(collusion_k);
        let shown = |rows: &[Vec<u32>], n_threads: usize| {
            let table = coded(rows, None);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let made = pool.install(|| release(&table, &asked, Algorithm::Mondrian));
            let cells: Vec<Vec<Option<String>>> = self::rows(&table, &made).into_iter().map(|(_, cells)| cells).collect();
            (cells, made.saved)
        };
        let turned = [&rows[turn..], &rows[..turn]].concat();
        let expected = shown(&rows, 1);
        prop_assert_eq!(&shown(&turned, 1), &expected);
        prop_assert_eq!(&shown(&rows, 4), &expected);
    }

    #[test]
    fn the_bound_is_never_above_what_the_butterfly_loses(
        rows in random_rows(6..40, 5), k in (1u32..4, 1u32..4), wide in 1u32..4,
    ) {
        let table = coded(&rows, None);
        let encoded = Encoded::new(&table, &[0, 1, 2, 3, 4]).unwrap();
        let kept: Vec<u32> = (0..rows.len() as u32).collect();
        let ask = |columns: &[usize], k| Ask { columns: columns.iter().copied().collect(), requirements: vec![Requirement::K(k)] };
        let asks = [ask(&[0, 1, 2], k.0), ask(&[2, 3, 4], k.1), ask(&[0, 4], 2)];
        let compile = |requirements: &[Requirement]| Rules::compile(&table, requirements, &kept);
        let folded = encoded.fold(&kept);
        let pairs: Vec<Vec<u32>> =
            (0..folded.len() as u32).collect::<Vec<_>>().chunks(wide as usize).map(<[u32]>::to_vec).collect();
        let quick = Mondrian { spec: spec(Algorithm::Mondrian).mondrian, keep_tree: KeepTree::No };
        for atoms in [Atoms::of_classes(&encoded.domains, &folded, &pairs), Atoms::of_rows(&encoded.domains, folded.clone())] {
            for n_asks in [2, 3] {
                let plan = Plan::new(&asks[..n_asks], &encoded.domains, &compile, Shape::Nested).unwrap();
                for split in plan.split.iter().chain(&plan.nested) {
                    let Some(built) = butterfly::Butterfly::build_flat(&atoms, &atoms.all(), split, &quick) else { continue };
                    let bounds = atoms.bounds(&atoms.all(), &split.body);
                    let of_body = atoms.perimeter(&bounds, &split.body) * rows.len() as f64;
                    let of_wings = bound::least_loss_of_wings(&atoms, &atoms.all(), split);
                    prop_assert!(of_body + of_wings <= built.loss() + 1e-9);
                }
            }
        }
    }
}
