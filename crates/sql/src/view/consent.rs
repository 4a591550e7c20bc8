//! [`Wishes`]: what persons allow a reader, from their policies to a [`Consent`] per row.

use chrono::NaiveDate;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use kohort_model::Consent;

use super::Definition;
use crate::policy::{PairId, Policies};

/// Who reads a view, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reader {
    /// The purpose and recipient; `None` if the view refers to no policies.
    pub pair: Option<PairId>,
    /// The day that retention periods are compared with.
    pub today: NaiveDate,
}

/// The policies of the rows of a query's result.
pub(super) struct Wishes {
    /// For each row, the place of its policy, `None` if its person has none; empty if the view refers to no policies.
    pub(super) policy_of_row: Vec<Option<u32>>,
}

impl Wishes {
    /// Finds the policies of the rows.
    pub(super) fn of(definition: &Definition, policies: Option<&Policies>, rows: &RecordBatch) -> Wishes {
        let (Some(policies), Some(key)) = (policies, definition.policy_key) else {
            return Wishes { policy_of_row: Vec::new() };
        };
        let keys = cast(rows.column(key), &DataType::Utf8);
        let policy_of_row = match &keys {
            Ok(keys) => keys.as_string::<i32>().iter().map(|key| policies.person(key?)).collect(),
            // A key that has no text form has no policy.
            Err(_) => vec![None; rows.num_rows()],
        };
        Wishes { policy_of_row }
    }

    /// For each row, the k of its person; `None` if the person has no policy and so allows nothing.
    pub(super) fn k(
        &self,
        definition: &Definition,
        policies: Option<&Policies>,
        pair: Option<PairId>,
        n_rows: usize,
    ) -> Vec<Option<u32>> {
        let Some(policies) = policies else { return vec![Some(definition.k_of(None)); n_rows] };
        let own = |person: u32| match pair {
            None => Some(policies.k(person)),
            Some(pair) => policies.k_for(pair, person),
        };
        let k = |policy: &Option<u32>| Some(definition.k_of(Some(own((*policy)?)?)));
        self.policy_of_row.iter().map(k).collect()
    }

    /// For each row, by how many levels its sensitive values are raised for the readers of a pair.
    pub(super) fn levels(&self, policies: &Policies, pair: PairId) -> Vec<u8> {
        let level = |policy: &Option<u32>| policies.choice(pair, (*policy)?).map(|choice| choice.level);
        self.policy_of_row.iter().map(|policy| level(policy).unwrap_or(0)).collect()
    }

    /// What the person of each row allows a reader. A person whose policy does not name the reader's purpose and recipient
    /// refuses everything.
    pub(super) fn consent(
        &self,
        definition: &Definition,
        policies: Option<&Policies>,
        reader: Reader,
        k: Vec<u32>,
    ) -> Consent {
        let n_rows = k.len();
        let (Some(policies), Some(pair)) = (policies, reader.pair) else {
            return Consent { k, level: vec![0; n_rows], refused: vec![0; n_rows] };
        };
        let refused = |policy: &Option<u32>| match policy {
            Some(policy) => refused_columns(definition, policies, *policy, pair, reader.today),
            None => u64::MAX,
        };
        let refused = self.policy_of_row.iter().map(refused).collect();
        Consent { k, level: self.levels(policies, pair), refused }
    }
}

/// The columns that a policy does not show the readers of a pair on a day: bit `p` for the column at position `p`. A policy
/// that does not name the pair refuses everything.
pub(super) fn refused_columns(
    definition: &Definition,
    policies: &Policies,
    policy: u32,
    pair: PairId,
    today: NaiveDate,
) -> u64 {
    let Some(choice) = policies.choice(pair, policy) else { return u64::MAX };
    let hidden = (0..definition.columns.len()).filter(|&column| !choice.shows(column, today));
    hidden.fold(0, |bits, column| bits | 1 << column)
}
