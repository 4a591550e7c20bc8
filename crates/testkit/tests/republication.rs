//! What an attacker who has all releases beside a register, and the register of each year, learns: among how few
//! persons somebody can be found, and who is private.
//!
//! Everything is counted person by person from released texts. Towns are small, so that every choice can be tried.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::AnonymizeError;
use kohort_core::register::{AnonymizedWithRegister, anonymize_with_register};
use kohort_model::register::{SENSITIVE_GROUP, SENSITIVE_TABLE};
use kohort_model::spec::{Algorithm, RegisterMethod, RegisterRows, Unmatched};
use kohort_model::{
    Cells, Column, InRegister, JoinedRegister, NULL, PreviousRelease, ReadBeside, Release, Requirement, Role, Silent,
    Spec, Table, ValueType,
};
use kohort_testkit::attacks::presence::{Place, quasi};
use kohort_testkit::random::Random;
use kohort_verify::{AskedOfJoin, Findings, SuppressionLimit, ToldApart, verify_joined};

const METHODS: [RegisterMethod; 2] = [RegisterMethod::Refine, RegisterMethod::Direct];

/// The place of everybody in one year; `None` for persons who don't live in the town.
type Town = Vec<Option<Place>>;

/// The persons who take part, with their answers if there is a question.
type Wave = Vec<(usize, Option<&'static str>)>;

/// A release, and everything that was known when it was made.
struct Year {
    town: Town,
    wave: Wave,
    release: Release,
    /// Rows as a reader has them, and the persons to whom they belong.
    rows: Vec<(Vec<String>, usize)>,
    values: Vec<Vec<String>>,
    findings: Findings,
}

/// The private table of a year, its join with the register, and everybody's places in earlier years.
struct Joined {
    table: Table,
    joined: JoinedRegister,
    /// The persons of the joined rows.
    persons: Vec<usize>,
    places: Vec<Vec<u32>>,
}

fn join(town: &Town, wave: &Wave, earlier: &[&Town]) -> Joined {
    let is_private = |person: usize| wave.iter().any(|(private, _)| *private == person);
    let mut persons: Vec<usize> = wave.iter().map(|(person, _)| *person).collect();
    persons.extend((0..town.len()).filter(|&person| town[person].is_some() && !is_private(person)));
    let mut places: Vec<Place> = persons.iter().map(|&person| town[person].clone().unwrap()).collect();
    let n_persons = places.len();
    let said = wave.iter().enumerate().map(|(row, (person, _))| {
        places.push(town[*person].clone().unwrap());
        InRegister::Same((n_persons + row) as u32)
    });
    let in_register: Vec<InRegister> = said.collect();
    let gone = (0..town.len()).filter(|&person| town[person].is_none());
    let ever: Vec<usize> = persons.iter().copied().chain(gone).collect();
    let mut places_then = Vec::new();
    for then in earlier {
        let place = |(row, &person): (usize, &usize)| match &then[person] {
            None => NULL,
            place if *place == town[person] => row as u32,
            Some(place) => {
                places.push(place.clone());
                places.len() as u32 - 1
            }
        };
        places_then.push(ever.iter().enumerate().map(place).collect());
    }
    let mut columns = quasi(&places[..wave.len()]);
    if wave.iter().any(|(_, value)| value.is_some()) {
        columns.push(Column::from_cells("value", Role::Sensitive, wave.iter().map(|(_, value)| *value)));
    }
    let table = |columns, n_rows| Table { name: "t".to_owned(), columns, n_rows, person: None };
    let joined = JoinedRegister {
        rows: table(quasi(&places), places.len()),
        n_microdata: wave.len(),
        n_register: n_persons - wave.len(),
        persons: in_register,
        key_prints: Vec::new(),
        respelled: Vec::new(),
    };
    Joined { table: table(columns, wave.len()), joined, persons, places: places_then }
}

/// A table of a release, row by row.
fn texts(table: &Table, release: &Release, position: usize) -> Vec<Vec<String>> {
    let Some(released) = release.tables.get(position) else { return Vec::new() };
    let cell = |column: &kohort_model::ReleasedColumn, row: usize| match &column.cells {
        Cells::Recoded { labels, ids } => labels.get(ids[row]).to_owned(),
        Cells::Surrogate { ids } => ids[row].to_string(),
        Cells::Copied => table.columns[column.source].cell(released.rows[row] as usize).unwrap_or_default().to_owned(),
    };
    let cells = |row: usize| released.columns.iter().map(|column| cell(column, row)).collect();
    (0..released.rows.len()).map(cells).collect()
}

/// A release as it is read again; `at` is its position among the years.
fn read_again(year: &Year, at: usize, places: Vec<u32>) -> PreviousRelease {
    let table = |name: &str, texts: &[Vec<String>], names: &[String]| {
        let columns = names.iter().enumerate().map(|(at, name)| {
            let cells = texts.iter().map(|cells| Some(cells[at].as_str()));
            let role = match name.as_str() {
                SENSITIVE_GROUP => Role::Key,
                "value" => Role::Sensitive,
                _ => Role::Quasi,
            };
            let column = Column::from_cells(name, role, cells);
            if role == Role::Quasi { column.typed(ValueType::Integer) } else { column }
        });
        Table { name: name.to_owned(), columns: columns.collect(), n_rows: texts.len(), person: None }
    };
    let names = |position: usize| -> Vec<String> {
        year.release.tables[position].columns.iter().map(|column| column.name.clone()).collect()
    };
    let rows: Vec<Vec<String>> = year.rows.iter().map(|(cells, _)| cells.clone()).collect();
    let mut tables = vec![table("t", &rows, &names(0))];
    if year.release.tables.len() > 1 {
        tables.push(table(SENSITIVE_TABLE, &year.values, &names(1)));
    }
    let together = year.findings.joined.as_ref().and_then(|found| found.together.as_ref());
    let beside = together.map(|found| ReadBeside { releases: (0..at).collect(), k: found.k });
    PreviousRelease { name: format!("year {at}"), tables, places, beside }
}

/// The release of a year, which the verifier accepts, and the persons who were left out.
fn release(
    town: &Town,
    wave: &Wave,
    earlier: &[Year],
    spec: &Spec,
    asked: &[Requirement],
) -> Result<(Year, Vec<usize>), (AnonymizeError, Vec<usize>)> {
    let towns: Vec<&Town> = earlier.iter().map(|year| &year.town).collect();
    let Joined { table, joined, persons, places } = join(town, wave, &towns);
    let previous: Vec<PreviousRelease> =
        earlier.iter().zip(places).enumerate().map(|(at, (year, places))| read_again(year, at, places)).collect();
    let done = match anonymize_with_register(&table, &joined, &previous, spec, asked, &Silent) {
        Ok(done) => done,
        Err(error) => {
            let rows = if let AnonymizeError::PreviousCrowd { rows, .. } = &error { rows.clone() } else { Vec::new() };
            return Err((error, rows.iter().map(|&row| persons[row as usize - 1]).collect()));
        }
    };
    let AnonymizedWithRegister { anonymized, left_out, .. } = done;
    let of_join = AskedOfJoin {
        requirements: asked,
        delta_presence: spec.delta_presence,
        rows: spec.register.release,
        told_apart: ToldApart::ByValues(Unmatched::Count),
        previous: &previous,
        limit: SuppressionLimit::share(spec.max_suppressed),
    };
    let verified = verify_joined(anonymized.release, &table, &joined, of_join).unwrap();
    let findings = verified.findings().clone();
    let release = verified.get().clone();
    let cells = texts(&table, &release, 0);
    let sources = release.tables[0].rows.iter().map(|&row| persons[row as usize]);
    let rows = cells.into_iter().zip(sources).collect();
    let values = texts(&table, &release, 1);
    let left_out = left_out.iter().map(|&row| persons[row as usize]).collect();
    Ok((Year { town: town.clone(), wave: wave.clone(), release, rows, values, findings }, left_out))
}

fn holds(cells: &[String], place: &Option<Place>) -> bool {
    let number = |text: &str| text.parse::<i32>().unwrap();
    let range = |cell: &String| match cell.strip_prefix('[').and_then(|cell| cell.strip_suffix(']')) {
        Some(range) => range.split_once(',').map(|(low, high)| (number(low), number(high))).unwrap(),
        None => (number(cell), number(cell)),
    };
    place
        .as_ref()
        .is_some_and(|place| place.iter().zip(cells).all(|(at, cell)| (range(cell).0..=range(cell).1).contains(at)))
}

/// The classes of a year that cover a place.
fn holding<'y>(year: &'y Year, place: &Option<Place>) -> BTreeSet<&'y Vec<String>> {
    year.rows.iter().map(|(cells, _)| cells).filter(|cells| holds(cells, place)).collect()
}

/// How many persons of the newest register lie in a class of the newest release and in classes of earlier years, by
/// each year's register.
fn n_candidates(town: &Town, class: Option<&Vec<String>>, way: &[(&Year, &Vec<String>)], who: usize) -> usize {
    let is_candidate = |&person: &usize| {
        person == who
            || (town[person].is_some()
                && class.is_none_or(|class| holds(class, &town[person]))
                && way.iter().all(|(year, class)| holds(class, &year.town[person])))
    };
    (0..town.len()).filter(is_candidate).count()
}

/// The fewest candidates for anybody of the last year: in the classes of all earlier years in which they truly took
/// part, and in any single class of an earlier year that covers them.
fn fewest_candidates(last: &Year, earlier: &[Year]) -> usize {
    let mut fewest = usize::MAX;
    for (class, person) in last.rows.iter().filter(|(_, who)| last.wave.iter().any(|(private, _)| private == who)) {
        let mut ways: Vec<Vec<(&Year, &Vec<String>)>> = vec![Vec::new()];
        for year in earlier {
            if year.wave.iter().any(|(private, _)| private == person) {
                let class = year.rows.iter().find(|(_, who)| who == person).map(|(cells, _)| (year, cells));
                ways[0].extend(class);
            }
            ways.extend(holding(year, &year.town[*person]).into_iter().map(|class| vec![(year, class)]));
        }
        let counts = ways.iter().filter(|way| !way.is_empty());
        fewest = counts.map(|way| n_candidates(&last.town, Some(class), way, *person)).fold(fewest, usize::min);
    }
    fewest
}

/// Whether, in some choice of earlier classes that cover a person, fewer than k persons of the newest register were
/// with them. Then no new class can take the person.
fn is_unplaceable(town: &Town, earlier: &[Year], person: usize, k: usize) -> bool {
    let choices = |place: &dyn Fn(&Year) -> Option<Place>| {
        let mut ways: Vec<Vec<(&Year, &Vec<String>)>> = vec![Vec::new()];
        for year in earlier {
            for way in ways.clone() {
                let classes = holding(year, &place(year)).into_iter();
                ways.extend(classes.map(|class| [way.as_slice(), &[(year, class)]].concat()));
            }
        }
        ways.iter().any(|way| !way.is_empty() && n_candidates(town, None, way, person) < k)
    };
    choices(&|year| year.town[person].clone().or_else(|| town[person].clone())) || choices(&|_| town[person].clone())
}

fn spec(k: u32, algorithm: Algorithm, method: RegisterMethod) -> Spec {
    let mut spec = Spec::new(k);
    spec.algorithm = algorithm;
    spec.register.method = method;
    spec.register.unmatched = Unmatched::Count;
    spec
}

/// The town a year later: some people have moved, some have left and some have come.
fn a_year_later(town: &Town, random: &mut Random, n_changes: usize) -> Town {
    let mut next = town.clone();
    let n_columns = town.iter().flatten().next().unwrap().len();
    for _ in 0..n_changes {
        let person = random.below(town.len());
        let somewhere: Place = (0..n_columns).map(|_| random.below(12) as i32).collect();
        next[person] = if random.once_in(4) && next[person].is_some() { None } else { Some(somewhere) };
    }
    next
}

#[test]
fn a_reader_of_all_releases_and_registers_finds_at_least_k_persons_and_no_more_than_the_verifier_says() {
    let mut random = Random::new(22);
    let (mut n_third, mut n_left_out) = (0, 0);
    for round in 0..240 {
        let (k, n_columns) = (2 + random.below(3), 1 + random.below(2));
        let n_people = 20 + random.below(40);
        let mut town: Town =
            (0..n_people).map(|_| Some((0..n_columns).map(|_| random.below(12) as i32).collect())).collect();
        let mut spec = spec(k as u32, *random.pick(&[Algorithm::Mondrian, Algorithm::Auto]), METHODS[round % 2]);
        spec.max_suppressed = 0.5;
        if round % 5 == 4 {
            spec.register.release = RegisterRows::Microdata;
        }
        let mut years: Vec<Year> = Vec::new();
        for _ in 0..3 {
            let here: Vec<usize> = (0..town.len()).filter(|&person| town[person].is_some()).collect();
            let n = 3 + random.below(here.len() / 2);
            let wave: Wave = random.choose(&here, n).into_iter().map(|person| (person, None)).collect();
            match release(&town, &wave, &years, &spec, &[Requirement::K(k as u32)]) {
                Err((AnonymizeError::PreviousCrowd { .. }, persons)) => {
                    assert!(persons.len() * 2 > wave.len());
                    assert!(persons.iter().all(|&person| is_unplaceable(&town, &years, person, k)), "round {round}");
                    break;
                }
                Err((AnonymizeError::TooFewPersons { .. } | AnonymizeError::TooFewJoined { .. }, _)) => break,
                Err((error, _)) => panic!("round {round}: {error}"),
                Ok((year, left_out)) => {
                    assert!(left_out.iter().all(|&person| is_unplaceable(&town, &years, person, k)), "round {round}");
                    n_left_out += left_out.len();
                    let found = fewest_candidates(&year, &years);
                    assert!(found >= k, "round {round}: {found} candidates");
                    if let Some(together) = &year.findings.joined.as_ref().unwrap().together {
                        assert!(together.k >= k as u64 && together.k <= found as u64, "round {round}: {together:?}");
                    }
                    years.push(year);
                }
            }
            let n_changes = random.below(4);
            town = a_year_later(&town, &mut random, n_changes);
        }
        n_third += usize::from(years.len() == 3);
    }
    assert!(n_third >= 120, "only {n_third} of 240 towns came to a third release");
    assert!(n_left_out > 0, "nobody was left out, so this test shows nothing about leaving out");
}

/// Every way to choose so many persons, in every order.
fn choices(persons: &[usize], n: usize) -> Vec<Vec<usize>> {
    let Some(n) = n.checked_sub(1) else { return vec![Vec::new()] };
    let longer = |choice: Vec<usize>| {
        let others: Vec<usize> = persons.iter().copied().filter(|person| !choice.contains(person)).collect();
        others.into_iter().map(move |person| [choice.as_slice(), &[person]].concat())
    };
    choices(persons, n).into_iter().flat_map(longer).collect()
}

/// How much surer of somebody's presence a reader gets than the verifier says, by replaying every private table of the
/// last year; and how many different releases there are.
fn surer_than_stated(town: &Town, earlier: &[Year], spec: &Spec, values: &[&'static str]) -> (f64, usize) {
    let here: Vec<usize> = (0..town.len()).filter(|&person| town[person].is_some()).collect();
    let mut behind: BTreeMap<String, Vec<(Vec<usize>, f64)>> = BTreeMap::new();
    for private in choices(&here, values.len()) {
        let wave: Wave = private.iter().copied().zip(values.iter().map(|&value| Some(value))).collect();
        let Ok((year, _)) = release(town, &wave, earlier, spec, &[Requirement::K(spec.k)]) else { continue };
        let cells: Vec<&Vec<String>> = year.rows.iter().map(|(cells, _)| cells).collect();
        let stated = year.findings.joined.as_ref().unwrap().presence.unwrap().highest;
        behind.entry(format!("{cells:?} {:?}", year.values)).or_default().push((private, stated));
    }
    let mut surer = f64::NEG_INFINITY;
    for worlds in behind.values() {
        let stated = worlds.iter().map(|(_, stated)| *stated).fold(f64::INFINITY, f64::min);
        for person in &here {
            let n = worlds.iter().filter(|(private, _)| private.contains(person)).count();
            surer = surer.max(n as f64 / worlds.len() as f64 - stated);
        }
    }
    (surer, behind.len())
}

#[test]
fn replaying_every_private_table_beside_an_earlier_release_makes_nobody_surer_than_the_manifest_says() {
    let in_a_row = |places: &[i32]| -> Town { places.iter().map(|&place| Some(vec![place])).collect() };
    let first = in_a_row(&[1, 2, 3, 4, 6, 7, 8, 9]);
    // Either two people have exchanged places that are far apart, or one has moved and another has left.
    let (moved, left) = (in_a_row(&[8, 2, 3, 4, 6, 7, 1, 9]), {
        let mut town = in_a_row(&[1, 5, 3, 4, 6, 7, 8, 9]);
        town[7] = None;
        town
    });
    let mut n_releases = 0;
    for (algorithm, method) in [Algorithm::Mondrian, Algorithm::Auto].iter().flat_map(|&a| METHODS.map(|m| (a, m))) {
        for wave in [[0, 1, 4], [2, 5, 7]] {
            let mut spec = spec(3, algorithm, method);
            spec.max_suppressed = 0.4;
            let wave: Wave = wave.into_iter().zip(["d", "e", "f"].map(Some)).collect();
            let (year, _) = release(&first, &wave, &[], &spec, &[Requirement::K(3)]).unwrap();
            let years = [year];
            for town in [&first, &moved, &left] {
                let (surer, n) = surer_than_stated(town, &years, &spec, &["a", "b", "c"]);
                assert!(surer < 1e-9, "{algorithm:?} {method:?}: {surer} surer");
                n_releases += n;
            }
        }
    }
    assert!(n_releases > 30, "only {n_releases} different releases");
}
