//! Random specs: every way a release of one table can be made.

use kohort_model::Spec;
use kohort_model::spec::{Algorithm, Choose, Cuts, Keys, Leftovers, LossObjective, MondrianSpec, Objective, Order};
use proptest::prelude::*;

pub(super) fn spec() -> impl Strategy<Value = Spec> {
    let k = prop_oneof![1 => Just(1u32), 6 => 2u32..7, 1 => 7u32..30];
    let max_suppressed = prop_oneof![3 => Just(0.0), 1 => Just(0.1), 1 => 0.0f64..0.6];
    let mondrian = (
        prop_oneof![Just(Cuts::Strict), Just(Cuts::Relaxed)],
        prop_oneof![Just(Choose::Widest), Just(Choose::RoundRobin)],
    )
        .prop_map(|(cuts, choose)| MondrianSpec { cuts, choose });
    let order = prop_oneof![3 => Just(Order::Sorted), 1 => Just(Order::Input)];
    let keys = prop_oneof![3 => Just(Keys::Surrogate), 1 => Just(Keys::Keep)];
    let algorithm = prop_oneof![
        2 => Just(Algorithm::Mondrian),
        2 => Just(Algorithm::Auto),
        1 => Just(Algorithm::TopDown),
        1 => Just(Algorithm::Datafly),
        1 => Just(Algorithm::Cluster),
        1 => Just(Algorithm::FullDomain),
    ];
    let block = prop::option::of(1u32..40);
    let objective = prop_oneof![Just(Objective::Lm), Just(Objective::Dm)];
    let minimized =
        prop_oneof![3 => Just(LossObjective::Lm), 1 => Just(LossObjective::Rank), 1 => Just(LossObjective::Entropy)];
    let of_algorithms = (mondrian, block, objective, minimized);
    (k, max_suppressed, algorithm, of_algorithms, order, keys, any::<bool>()).prop_map(
        |(k, max_suppressed, algorithm, (mondrian, block, objective, minimized), order, keys, suppress)| {
            let mut spec = Spec::new(k);
            spec.algorithm = algorithm;
            spec.max_suppressed = max_suppressed;
            spec.mondrian = mondrian;
            spec.datafly.block = block;
            spec.full_domain.objective = objective;
            spec.objective = minimized;
            spec.order = order;
            spec.keys = keys;
            spec.leftovers = if suppress && max_suppressed > 0.0 { Leftovers::Suppress } else { Leftovers::Merge };
            spec
        },
    )
}
