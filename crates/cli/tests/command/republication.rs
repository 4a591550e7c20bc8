//! A release with a register that may be read together with earlier ones.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::runner::{Folder, Ran, digest};

const TABLE: &str = "\
[tables.survey]
file = \"survey.csv\"
person = \"id\"
[tables.survey.columns]
id = \"identifier\"
age = \"quasi\"
answer = { role = \"sensitive\", l = 2 }
[registers.town]
file = \"town.csv\"
key = \"id\"
";

fn spec(settings: &str) -> String {
    format!("k = 3\nalgorithm = \"mondrian\"\n{settings}\n{TABLE}")
}

/// The same spec with public presence, so that classes depend on who takes part.
fn public(settings: &str) -> String {
    spec(settings).replace("[registers.town]", "[register]\nrelease = \"microdata\"\n[registers.town]")
}

/// A town of 24 persons, one of each age from 1 on.
fn town() -> String {
    (1..=24).map(|age| format!("p{age},{age}\n")).fold("id,age\n".to_owned(), |csv, row| csv + &row)
}

/// People of these ages, each with an answer.
fn survey(people: &[(u32, &str)]) -> String {
    people
        .iter()
        .map(|(age, answer)| format!("p{age},{age},{answer}\n"))
        .fold("id,age,answer\n".to_owned(), |csv, row| csv + &row)
}

/// The first wave: everybody of even age.
fn first_wave() -> Vec<(u32, &'static str)> {
    (1..=12).map(|half| (2 * half, if half % 2 == 0 { "yes" } else { "no" })).collect()
}

/// The second wave: half of the town. Some of them took part before.
fn second_wave() -> Vec<(u32, &'static str)> {
    let ages = [3, 4, 5, 6, 9, 10, 11, 14, 15, 17, 18, 22];
    ages.into_iter().zip(["yes", "no"].into_iter().cycle()).collect()
}

/// A folder with the first release, and the files of the second wave.
pub(crate) fn after_the_first() -> Folder {
    after_the_first_by(spec)
}

fn after_the_first_by(spec: fn(&str) -> String) -> Folder {
    let folder =
        Folder::with(&[("first.toml", &spec("")), ("survey.csv", &survey(&first_wave())), ("town.csv", &town())]);
    let ran = folder.run(&["anonymize", "first.toml", "-o", "first"]);
    assert_eq!(ran.code, 0, "{ran}");
    folder.write("survey.csv", survey(&second_wave()).as_bytes());
    folder.write("second.toml", spec("previous = \"first/\"").as_bytes());
    folder
}

fn refused(folder: &Folder, arguments: &[&str], code: i32) -> Ran {
    let ran = folder.run_in_vain(arguments);
    assert_eq!(ran.code, code, "{ran}");
    ran
}

fn manifest(folder: &Folder, release: &str) -> Value {
    serde_json::from_str(&folder.read(&format!("{release}/manifest.json"))).unwrap()
}

/// Makes the second release.
pub(crate) const SECOND: &[&str] = &["anonymize", "second.toml", "-o", "second"];
const AGAINST: &[&str] = &["verify", "second", "--against", "second.toml"];

/// The lowest and the highest age of each class.
fn classes(folder: &Folder, release: &str) -> Vec<(u32, u32)> {
    let text = folder.read(&format!("{release}/survey.csv"));
    let mut classes: Vec<(u32, u32)> = text
        .lines()
        .skip(1)
        .map(|row| {
            let ages = row.rsplit_once(',').unwrap().0.trim_matches(|c| "\"[]".contains(c)).to_owned();
            let (low, high) = ages.split_once(',').unwrap_or((&ages, &ages));
            (low.parse().unwrap(), high.parse().unwrap())
        })
        .collect();
    classes.dedup();
    classes
}

/// The fewest persons of both releases whom a class of the second has in common with a class of the first.
fn fewest_in_common(folder: &Folder) -> u32 {
    let (first, second) = (classes(folder, "first"), classes(folder, "second"));
    let common = |age: u32| {
        let first: Vec<_> = first.iter().filter(|(low, high)| (*low..=*high).contains(&age)).collect();
        let second = second.iter().filter(|(low, high)| (*low..=*high).contains(&age));
        let widths: Vec<u32> = second
            .flat_map(|b| first.iter().map(|a| (a.1.min(b.1) + 1).saturating_sub(a.0.max(b.0))).collect::<Vec<_>>())
            .collect();
        widths.into_iter().min()
    };
    second_wave().iter().filter_map(|&(age, _)| common(age)).min().unwrap()
}

#[test]
fn the_second_release_is_made_safe_to_be_read_beside_the_first() {
    let folder = after_the_first_by(public);
    folder.write("careless.toml", public("").as_bytes());
    let careless = folder.run(&["anonymize", "careless.toml", "-o", "second"]);
    assert_eq!(careless.code, 0, "{careless}");
    assert!(fewest_in_common(&folder) < 3, "the two releases single nobody out: the case shows nothing");

    let ran = folder.run(&["anonymize", "second.toml", "-o", "second", "--force"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!("republication", ran);
    assert!(fewest_in_common(&folder) >= 3);
    let previous = &manifest(&folder, "second")["previous"];
    assert_eq!(previous["manifests"], json!([digest(folder.read("first/manifest.json").as_bytes())]));
    assert!(previous["k"].as_u64() >= Some(3) && previous["l"]["answer"] == 2, "{previous}");
    let alone = folder.run_in_vain(&["verify", "second"]);
    assert_eq!(alone.code, 0, "{alone}");
    assert!(
        alone.stdout.contains(
            "what readers of earlier releases learn can't be counted without those releases and the register"
        ),
        "{alone}"
    );
    let against = folder.run_in_vain(AGAINST);
    assert_eq!(against.code, 0, "{against}");
    assert_snapshot!("republication_against", against);
}

/// Changes the manifest of the second release, and verifies it against its spec.
fn with_claim(folder: &Folder, change: impl FnOnce(&mut Value)) -> Ran {
    let original = folder.read("second/manifest.json");
    let mut claims: Value = serde_json::from_str(&original).unwrap();
    change(&mut claims);
    folder.write("second/manifest.json", format!("{claims:#}\n").as_bytes());
    let ran = folder.run_in_vain(AGAINST);
    folder.write("second/manifest.json", original.as_bytes());
    ran
}

#[test]
fn a_false_claim_about_reading_releases_together_is_rejected() {
    let folder = after_the_first();
    let ran = folder.run(SECOND);
    assert_eq!(ran.code, 0, "{ran}");
    let against = folder.run_in_vain(AGAINST);
    assert_eq!(against.code, 0, "{against}");
    assert!(!against.stdout.contains("previous"), "everything can be compared where classes don't overlap: {against}");
    let shifted = |key: &'static str, by: i64| {
        move |claims: &mut Value| {
            let claim = claims.pointer_mut(key).unwrap();
            *claim = json!(claim.as_i64().unwrap() + by);
        }
    };
    for by in [-1, 1] {
        let ran = with_claim(&folder, shifted("/previous/k", by));
        assert_eq!(ran.code, 1, "{ran}");
        assert!(ran.stderr.contains("manifest.json says previous.k = "), "{ran}");
        let ran = with_claim(&folder, shifted("/previous/l/answer", by));
        assert_eq!(ran.code, 1, "{ran}");
        assert!(ran.stderr.contains("manifest.json says previous.l.answer = "), "{ran}");
    }
    let unsaid = with_claim(&folder, |claims| drop(claims["previous"]["l"].take()));
    assert_eq!(unsaid.code, 2, "{unsaid}");
    let others = with_claim(&folder, |claims| claims["previous"]["manifests"] = json!([digest(b"another")]));
    assert_eq!(others.code, 1, "{others}");
    let nothing = with_claim(&folder, |claims| drop(claims.as_object_mut().unwrap().remove("previous")));
    assert_eq!(nothing.code, 1, "{nothing}");
    // The reverse: the spec names no earlier release, and the manifest does.
    folder.write("second.toml", spec("").as_bytes());
    let too_much = folder.run_in_vain(AGAINST);
    assert_eq!(too_much.code, 1, "{too_much}");
}

#[test]
fn a_release_that_singles_people_out_beside_an_earlier_one_is_rejected_whatever_it_claims() {
    let folder = after_the_first_by(public);
    let ran = folder.run(SECOND);
    assert_eq!(ran.code, 0, "{ran}");
    let claimed = manifest(&folder, "second")["previous"].clone();
    // The same survey, released without regard to the first release, with the manifest of a release that regards it.
    folder.write("careless.toml", public("").as_bytes());
    let careless = folder.run(&["anonymize", "careless.toml", "-o", "second", "--force"]);
    assert_eq!(careless.code, 0, "{careless}");
    assert!(fewest_in_common(&folder) < 3, "the two releases single nobody out: the case shows nothing");
    let ran = with_claim(&folder, |claims| claims["previous"] = claimed);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("read together with earlier releases"), "{ran}");
}

#[test]
fn one_person_more_or_less_is_refused() {
    let folder = after_the_first();
    let mut wave = first_wave();
    wave.push((23, "maybe"));
    folder.write("survey.csv", survey(&wave).as_bytes());
    assert_snapshot!("republication_one_more", refused(&folder, SECOND, 1));
    wave.truncate(11);
    folder.write("survey.csv", survey(&wave).as_bytes());
    refused(&folder, SECOND, 1);
}

#[test]
fn the_same_survey_can_be_released_again() {
    let folder = after_the_first();
    folder.write("survey.csv", survey(&first_wave()).as_bytes());
    let ran = folder.run(SECOND);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.read("first/survey.csv"), folder.read("second/survey.csv"));
}

#[test]
fn a_chain_of_releases_must_be_named_whole() {
    let folder = after_the_first();
    assert_eq!(folder.run(SECOND).code, 0);
    folder.write("third.toml", spec("previous = \"second\"").as_bytes());
    let third = &["anonymize", "third.toml", "-o", "third"];
    assert_snapshot!("republication_chain", refused(&folder, third, 2));
    folder.write("third.toml", spec("previous = [\"first\", \"second\"]").as_bytes());
    let ran = folder.run(third);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(manifest(&folder, "third")["previous"]["manifests"].as_array().unwrap().len(), 2);
}

#[test]
fn a_damaged_earlier_release_is_refused() {
    let folder = after_the_first();
    let rows = folder.read("first/survey.csv");
    folder.write("first/survey.csv", rows.replacen("[", "[0", 1).as_bytes());
    assert_snapshot!("republication_damaged", refused(&folder, SECOND, 1));
    folder.write("first/manifest.json", b"{}");
    refused(&folder, SECOND, 2);
    folder.write("second.toml", spec("previous = \"nowhere\"").as_bytes());
    assert_snapshot!("republication_nowhere", refused(&folder, SECOND, 2));
}

#[test]
fn an_earlier_release_with_another_register_or_other_columns_is_refused() {
    let folder = after_the_first();
    folder.write("town.csv", town().replace("p24,24", "p24,25").as_bytes());
    assert_snapshot!("republication_other_register", refused(&folder, SECOND, 2));

    let folder = after_the_first();
    let renamed = |text: String| text.replace("age", "years");
    folder.write("survey.csv", renamed(survey(&second_wave())).as_bytes());
    folder.write("town.csv", renamed(town()).as_bytes());
    folder.write("second.toml", renamed(spec("previous = \"first/\"")).as_bytes());
    refused(&folder, SECOND, 2);
}

/// The lowest and the highest age of each class of a release that can hold a person of this age.
fn classes_of(folder: &Folder, release: &str, age: u32) -> Vec<(u32, u32)> {
    classes(folder, release).into_iter().filter(|(low, high)| (*low..=*high).contains(&age)).collect()
}

/// Ages by name.
fn ages(town: &str) -> BTreeMap<String, u32> {
    let person = |row: &str| row.split_once(',').map(|(name, age)| (name.to_owned(), age.parse().unwrap()));
    town.lines().skip(1).filter_map(person).collect()
}

/// What a reader of all releases and registers finds out about the last wave: the fewest persons who, by the register of
/// each year, were in one class of each release that holds one of them. `past` are earlier releases with their registers.
fn fewest_candidates(folder: &Folder, wave: &[(u32, &str)], past: &[(&str, &str)], last: (&str, &str)) -> usize {
    let now = &ages(last.1);
    let fewest = wave.iter().filter_map(|(age, _)| {
        let name = format!("p{age}");
        let mut ways: Vec<Vec<(u32, u32)>> = vec![Vec::new()];
        for (release, town) in past {
            let Some(&then) = ages(town).get(&name) else { continue };
            let holding = classes_of(folder, release, then);
            if !holding.is_empty() {
                let longer = |way: &Vec<(u32, u32)>| -> Vec<Vec<(u32, u32)>> {
                    holding.iter().map(|&class| [way.as_slice(), &[class]].concat()).collect()
                };
                ways = ways.iter().flat_map(longer).collect();
            }
        }
        let classes = classes_of(folder, last.0, now[&name]);
        let ways = ways.iter().filter(|way| way.len() == past.len());
        let counts = ways.flat_map(|way| {
            classes.iter().map(move |class| {
                let is_in =
                    |age: Option<&u32>, class: &(u32, u32)| age.is_some_and(|age| (class.0..=class.1).contains(age));
                let is_candidate = |person: &&String| {
                    let then = past.iter().zip(way).all(|((_, town), class)| is_in(ages(town).get(*person), class));
                    then && is_in(now.get(*person), class)
                };
                now.keys().filter(is_candidate).count()
            })
        });
        counts.min()
    });
    fewest.min().unwrap()
}

#[test]
fn people_who_moved_still_hide_those_they_were_with() {
    let folder = after_the_first();
    let then = town();
    folder.write("then.csv", then.as_bytes());
    // Person 2 was in a class with 1 and 3, and nobody else.
    let now = then.replace("p2,2\n", "p2,20\n");
    folder.write("town.csv", now.as_bytes());
    folder.write("second.toml", (spec("previous = \"first/\"") + "previous = \"then.csv\"\n").as_bytes());
    let ran = folder.run(SECOND);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("suppressed       0\n"), "{ran}");
    assert!(fewest_candidates(&folder, &second_wave(), &[("first", &then)], ("second", &now)) >= 3);
    assert_eq!(folder.run_in_vain(&["verify", "second", "--against", "second.toml"]).code, 0);
}

#[test]
fn a_third_release_can_be_read_beside_two_earlier_ones_when_people_moved_in_between() {
    let folder = after_the_first();
    let (first, second, third) = (
        town(),
        town().replace("p2,2\n", "p2,20\n"),
        town().replace("p2,2\n", "p2,20\n").replace("p16,16\n", "p16,5\n").replace("p7,7\n", ""),
    );
    folder.write("town-1.csv", first.as_bytes());
    folder.write("town-2.csv", second.as_bytes());
    folder.write("town.csv", second.as_bytes());
    folder.write("second.toml", (spec("previous = \"first/\"") + "previous = \"town-1.csv\"\n").as_bytes());
    let ran = folder.run(SECOND);
    assert_eq!(ran.code, 0, "{ran}");

    let answers = ["no", "yes", "maybe"].into_iter().cycle();
    let wave: Vec<(u32, &str)> = [1, 4, 5, 6, 8, 9, 11, 12, 15, 18, 20, 22, 24].into_iter().zip(answers).collect();
    folder.write("survey.csv", survey(&wave).as_bytes());
    folder.write("town.csv", third.as_bytes());
    let settings = spec("max_suppressed = 0.4\nprevious = [\"first\", \"second\"]");
    folder.write("third.toml", (settings + "previous = [\"town-1.csv\", \"town-2.csv\"]\n").as_bytes());
    let ran = folder.run(&["anonymize", "third.toml", "-o", "third"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(manifest(&folder, "third")["previous"]["k"].as_u64() >= Some(3));
}

#[test]
fn people_whom_no_class_can_take_are_left_out_and_named_to_the_publisher_alone() {
    let folder = after_the_first();
    folder.write("then.csv", town().as_bytes());
    let answers = ["yes", "no", "maybe"].into_iter().cycle();
    let wave: Vec<(u32, &str)> = second_wave().iter().map(|&(age, _)| age).zip(answers).collect();
    folder.write("survey.csv", survey(&wave).as_bytes());
    // Persons 1 to 3 were a class. Now 3 takes part, and 1 has left the town.
    folder.write("town.csv", town().replace("p1,1\n", "").as_bytes());
    let settings = |settings: &str| spec(&format!("{settings}previous = \"first/\"")) + "previous = \"then.csv\"\n";
    folder.write("second.toml", settings("").as_bytes());
    assert_snapshot!("republication_left_out_refused", refused(&folder, SECOND, 1));
    folder.write("second.toml", settings("max_suppressed = 0.1\n").as_bytes());
    let ran = folder.run(SECOND);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!("republication_left_out", ran);
    let manifest = manifest(&folder, "second");
    assert_eq!(manifest["persons"]["suppressed"], 1);
    assert!(!folder.read("second/manifest.json").contains("rows_left_out"));
    let ran = folder.run(&["anonymize", "second.toml", "--dry-run", "--json"]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(printed["rows_left_out"], json!([1]));
}

#[test]
fn the_printed_k_is_the_one_that_was_checked() {
    // Person 3 moved to the town later, so the earlier register has two persons of the first class, and 3 is the third.
    let without_3 = town().replace("p3,3\n", "");
    let folder = Folder::with(&[
        ("first.toml", &spec("")),
        ("survey.csv", &survey(&first_wave())),
        ("town.csv", &without_3),
        ("then.csv", &without_3),
        ("second.toml", &(spec("max_suppressed = 0.2\nprevious = \"first/\"") + "previous = \"then.csv\"\n")),
    ]);
    assert_eq!(folder.run(&["anonymize", "first.toml", "-o", "first"]).code, 0);
    folder.write("town.csv", town().as_bytes());
    let answers = ["yes", "no", "maybe"].into_iter().cycle();
    let wave: Vec<(u32, &str)> = second_wave().iter().map(|&(age, _)| age).zip(answers).collect();
    folder.write("survey.csv", survey(&wave).as_bytes());
    let ran = folder.run(SECOND);
    assert_eq!(ran.code, 0, "{ran}");
    let k = &manifest(&folder, "second")["previous"]["k"];
    assert!(k.as_u64() >= Some(3), "{ran}");
    assert!(ran.stderr.contains(&format!("read together    with 1 earlier release: k = {k}")), "{ran}");
}

#[test]
fn a_register_that_has_changed_counts_people_where_they_were_and_are() {
    let folder = after_the_first_by(public);
    let then = town();
    folder.write("then.csv", then.as_bytes());
    // Person 24 has moved away, and a new person has come who does not count.
    folder.write("town.csv", then.replace("p24,24\n", "new,13\n").as_bytes());
    let named = public("previous = \"first/\"") + "previous = \"then.csv\"\n";
    folder.write("second.toml", named.as_bytes());
    let ran = folder.run(SECOND);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(manifest(&folder, "second")["previous"]["k"].as_u64() >= Some(3));
    assert!(fewest_in_common(&folder) >= 3);

    // If everybody except the participants was replaced, nobody from before hides them.
    let people: Vec<u32> = second_wave().iter().map(|&(age, _)| age).collect();
    let replaced: String = then
        .lines()
        .map(|row| match row.split_once(',').and_then(|(_, age)| age.parse().ok()) {
            Some(age) if !people.contains(&age) => format!("n{age},{age}\n"),
            _ => format!("{row}\n"),
        })
        .collect();
    folder.write("town.csv", replaced.as_bytes());
    let other = refused(&folder, &["anonymize", "second.toml", "-o", "third"], 1);
    assert_snapshot!("republication_replaced", other);
}

#[test]
fn an_earlier_release_without_a_register_is_read_too() {
    let folder = after_the_first();
    let (table, _) = TABLE.split_once("[registers").unwrap();
    folder.write("plain.toml", format!("k = 3\nalgorithm = \"mondrian\"\n{table}").as_bytes());
    folder.write("survey.csv", survey(&first_wave()).as_bytes());
    assert_eq!(folder.run(&["anonymize", "plain.toml", "-o", "first", "--force"]).code, 0);
    folder.write("survey.csv", survey(&second_wave()).as_bytes());
    let ran = folder.run(SECOND);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(fewest_in_common(&folder) >= 3);
}
