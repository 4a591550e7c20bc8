//! What an attacker who has the release, the register, the algorithm and k learns about who is in the private table.
//!
//! First every private table that a small register allows is replayed, so the share of tables in which a person is
//! private is known exactly. Then the face attack runs on tables of ordinary size.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use kohort_core::register::anonymize_with_register;
use kohort_model::spec::{Algorithm, RegisterMethod, RegisterRows, Unmatched};
use kohort_model::{Presence, Release, Requirement, Silent, Spec};
use kohort_testkit::attacks::presence::{
    Learned, Place, Secret, World, careless, face_attack, registers, replay, secrets, town,
};
use kohort_verify::{AskedOfJoin, SuppressionLimit, ToldApart, Violation, Violations, verify_joined};

const METHODS: [RegisterMethod; 3] = [RegisterMethod::Refine, RegisterMethod::Direct, RegisterMethod::Auto];

fn spec(k: u32, algorithm: Algorithm, method: RegisterMethod, unmatched: Unmatched) -> Spec {
    let mut spec = Spec::new(k);
    spec.algorithm = algorithm;
    spec.register.method = method;
    spec.register.unmatched = unmatched;
    spec
}

fn learned(register: &[Place], secrets: &[Secret], absent: &[(Place, &'static str)], spec: &Spec) -> Learned {
    learned_of(register, secrets, absent, spec, &[Requirement::K(spec.k)])
}

fn learned_of(
    register: &[Place],
    secrets: &[Secret],
    absent: &[(Place, &'static str)],
    spec: &Spec,
    asked: &[Requirement],
) -> Learned {
    replay(register, secrets, absent, |world| {
        let (release, presence) = world.release(spec, asked)?;
        Some((release, presence.highest))
    })
}

const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Mondrian, Algorithm::Auto, Algorithm::TopDown, Algorithm::Cluster, Algorithm::Datafly];

#[test]
fn replaying_every_private_table_makes_nobody_surer_than_the_manifest_says() {
    for register in registers() {
        for algorithm in ALGORITHMS {
            for method in METHODS {
                let found =
                    learned(&register, &secrets(&["a", "b", "b"]), &[], &spec(3, algorithm, method, Unmatched::Count));
                assert!(found.n_releases > 0);
                assert!(found.surer_than_stated < 1e-9, "{algorithm:?} {method:?} {found:?}");
            }
        }
    }
}

#[test]
fn replaying_every_private_table_makes_nobody_surer_than_was_asked() {
    for register in registers() {
        for algorithm in ALGORITHMS {
            for method in METHODS {
                let mut spec = spec(3, algorithm, method, Unmatched::Count);
                spec.delta_presence = Some((0.0, 0.5));
                let found = learned(&register, &secrets(&["a", "b", "b"]), &[], &spec);
                assert!(found.n_releases > 0, "{algorithm:?} {method:?}");
                assert!(found.surest <= 0.5 + 1e-9, "{algorithm:?} {method:?} {found:?}");
                assert!(found.surer_than_stated < 1e-9, "{algorithm:?} {method:?} {found:?}");
            }
        }
    }
}

#[test]
fn people_outside_of_the_register_and_people_who_moved_give_nobody_away() {
    for register in registers() {
        let far = vec![30; register[0].len()];
        // Choose a place at which nobody of the register is: without a key, somebody there would count as the same
        // person.
        let near = vec![0; register[0].len()];
        let absent = [(near.clone(), "c"), (far.clone(), "a")];
        let mut moved = secrets(&["a", "b"]);
        moved[0].elsewhere = Some(near);
        let mut moved_far = secrets(&["a", "b"]);
        moved_far[1].elsewhere = Some(far);
        for (algorithm, method) in [Algorithm::Mondrian, Algorithm::Auto, Algorithm::TopDown].map(both).concat() {
            for (secrets, absent, unmatched) in [
                (secrets(&["a", "b"]), &absent[..], Unmatched::Count),
                (secrets(&["a", "b"]), &absent[..], Unmatched::Doubt),
                (moved.clone(), &absent[..1], Unmatched::Count),
                (moved_far.clone(), &absent, Unmatched::Count),
            ] {
                let found = learned(&register, &secrets, absent, &spec(3, algorithm, method, unmatched));
                assert!(found.n_releases > 0, "{algorithm:?} {method:?}");
                assert!(found.surer_than_stated < 1e-9, "{algorithm:?} {method:?} {unmatched:?} {found:?}");
            }
        }
    }
}

fn both(algorithm: Algorithm) -> [(Algorithm, RegisterMethod); 3] {
    METHODS.map(|method| (algorithm, method))
}

#[test]
fn people_who_are_left_out_give_nobody_away() {
    // Half of the persons with the common value fit into no group.
    for register in registers() {
        for (algorithm, method) in both(Algorithm::Mondrian) {
            let mut spec = spec(3, algorithm, method, Unmatched::Count);
            spec.max_suppressed = 0.5;
            let alpha = Requirement::Alpha { column: "value".to_owned(), alpha: 0.5 };
            let asked = [Requirement::K(2), alpha];
            let found = learned_of(&register, &secrets(&["a", "a", "a", "b", "c"]), &[], &spec, &asked);
            assert!(found.n_releases > 0, "{algorithm:?} {method:?}");
            assert!(found.surer_than_stated < 1e-9, "{algorithm:?} {method:?} {found:?}");
        }
    }
}

#[test]
fn the_face_attack_is_right_no_more_often_than_a_guess() {
    let (register, private) = town(4_000);
    let secrets = secrets(&["a", "b", "c", "d"].repeat(100));
    let world = World { register: &register, private, secrets: &secrets, absent: &[] };
    let (table, joined) = world.tables();
    for delta_presence in [None, Some((0.0, 0.3))] {
        for (algorithm, k) in [(Algorithm::Mondrian, 9), (Algorithm::Auto, 9), (Algorithm::TopDown, 9)] {
            for method in METHODS {
                let mut spec = spec(k, algorithm, method, Unmatched::Count);
                spec.delta_presence = delta_presence;
                let done = anonymize_with_register(&table, &joined, &[], &spec, &[Requirement::K(k)], &Silent).unwrap();
                let found = face_attack(&done.anonymized.release, &table, &world, k);
                assert!(found.tried >= 30, "{algorithm:?} {method:?}: only {} persons are named", found.tried);
                assert!(!found.is_beyond(found.by_chance), "{algorithm:?} {method:?}: {found:?}");
            }
        }
    }
}

#[test]
fn the_verifier_finds_that_boxes_were_fitted_to_the_private_persons() {
    let (register, private) = town(4_000);
    let secrets = secrets(&["a", "b", "c", "d"].repeat(100));
    let world = World { register: &register, private, secrets: &secrets, absent: &[] };
    let (table, joined) = world.tables();
    let requirements = [Requirement::K(9)];
    let presence_of = |release: Release, delta_presence| {
        let rows = RegisterRows::All;
        let told_apart = ToldApart::ByValues(Unmatched::Count);
        let asked = AskedOfJoin {
            requirements: &requirements,
            delta_presence,
            rows,
            told_apart,
            previous: &[],
            limit: SuppressionLimit::NOBODY,
        };
        let verified = verify_joined(release, &table, &joined, asked)?;
        Ok::<Presence, Violations>(verified.findings().joined.as_ref().unwrap().presence.unwrap())
    };
    // 22 persons lie alone on a face of their box, and all 22 are private; by chance 7 would be.
    let mut fitted = spec(9, Algorithm::Mondrian, RegisterMethod::Refine, Unmatched::Count);
    fitted.register.release = RegisterRows::Microdata;
    let done = anonymize_with_register(&table, &joined, &[], &fitted, &requirements, &Silent).unwrap();
    let violations = presence_of(careless(&done), Some((0.0, 0.99))).unwrap_err();
    assert!(matches!(violations.0[..], [Violation::Presence { .. }]), "{violations:?}");

    for method in METHODS {
        let mut spec = spec(9, Algorithm::Mondrian, method, Unmatched::Count);
        spec.delta_presence = Some((0.0, 0.3));
        let done = anonymize_with_register(&table, &joined, &[], &spec, &requirements, &Silent).unwrap();
        let presence = presence_of(done.anonymized.release, spec.delta_presence).unwrap();
        assert!(presence.highest <= 0.3 && presence.average <= 0.3, "{method:?} {presence:?}");
    }
}
