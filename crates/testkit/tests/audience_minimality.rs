//! What an audience that knows the algorithm learns about columns that only others know. The catalogue of attacks
//! replays all tables of a few people; these properties are about random people and audiences.

use kohort_model::spec::Algorithm;
use kohort_model::{Coalition, Requirement, Steer};
use kohort_testkit::attacks::steering::{People, audiences, classes, exchanged, rows, shown};
use proptest::prelude::*;

fn people(n_columns: usize) -> impl Strategy<Value = People> {
    prop::collection::vec(prop::collection::vec(0u32..8, n_columns), 6..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn exchanging_what_an_audience_does_not_know_changes_nothing(
        people in people(5),
        choice in 0usize..5,
        audience in 0usize..3,
        pairs in prop::collection::vec((0usize..1000, 0usize..1000), 1..20),
        collude in any::<bool>(),
        algorithm in prop::sample::select(vec![
            Algorithm::Auto, Algorithm::Mondrian, Algorithm::TopDown, Algorithm::Datafly, Algorithm::Cluster,
        ]),
    ) {
        let knowledge: [[&[usize]; 3]; 5] = [
            [&[0, 1], &[0, 2], &[0, 3, 4]],
            [&[0, 1], &[0, 2, 3], &[3, 4]],
            [&[0, 1, 3], &[0, 2, 3], &[0, 4]],
            [&[0], &[0, 1, 2], &[3, 4]],
            [&[0, 1], &[1, 2], &[0, 2, 3, 4]],
        ];
        let knowledge = knowledge[choice];
        let mut asked = audiences(&knowledge, 2, Steer::Common);
        if collude {
            let members = vec!["audience 0".to_owned(), "audience 2".to_owned()];
            asked.coalitions.push(Coalition { name: Some("two".to_owned()), members, requirements: vec![Requirement::K(3)] });
        }
        let knows = knowledge[audience];
        let seen = shown(&people, &asked, algorithm);
        let classes = classes(&seen, knows);
        let mut exchanged_people = people.clone();
        for (one, other) in pairs {
            let class = &classes[one % classes.len()];
            exchanged_people =
                exchanged(&exchanged_people, class[one / 7 % class.len()], class[other % class.len()], knows);
        }
        prop_assert_eq!(rows(&shown(&exchanged_people, &asked, algorithm)), rows(&seen));
    }
}
