//! What persons allow a reader: from policies to [`Consent`] per row.

use chrono::NaiveDate;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use kohort_model::Consent;

use super::Definition;
use crate::policy::{Choice, PairId, Policies};

/// Who reads a view, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reader {
    /// The purpose and recipient; `None` where the view refers to no policies.
    pub pair: Option<PairId>,
    /// The day on which retention is measured.
    pub today: NaiveDate,
}

/// What policies say of each row of a query's result, and whether they say anything.
pub(super) struct Wishes {
    /// Per row the place of its policy, `None` where nobody gave one; empty without policies.
    pub(super) policy_of_row: Vec<Option<u32>>,
}

impl Wishes {
    /// Finds the policies of the rows. Without policies nobody is asked.
    pub(super) fn of(definition: &Definition, policies: Option<&Policies>, rows: &RecordBatch) -> Wishes {
        let (Some(policies), Some(key)) = (policies, definition.policy_key) else {
            return Wishes { policy_of_row: Vec::new() };
        };
        let keys = cast(rows.column(key), &DataType::Utf8);
        let policy_of_row = match &keys {
            Ok(keys) => keys.as_string::<i32>().iter().map(|key| policies.person(key?)).collect(),
            // What has no text has no policy either.
            Err(_) => vec![None; rows.num_rows()],
        };
        Wishes { policy_of_row }
    }

    /// The k of each row's person, `None` where nobody allowed anything.
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

    /// By how many levels each row's sensitive values are raised for readers of a pair.
    pub(super) fn levels(&self, policies: &Policies, pair: PairId) -> Vec<u8> {
        let level = |policy: &Option<u32>| policies.choice(pair, (*policy)?).map(|choice| choice.level);
        self.policy_of_row.iter().map(|policy| level(policy).unwrap_or(0)).collect()
    }

    /// What each row's person allows a reader. Who gave this reader nothing refuses everything.
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
        let (mut level, mut refused) = (vec![0; n_rows], vec![u64::MAX; n_rows]);
        for (row, policy) in self.policy_of_row.iter().enumerate() {
            let Some(choice) = policy.and_then(|person| policies.choice(pair, person)) else { continue };
            level[row] = choice.level;
            refused[row] = refused_columns(&choice, definition, reader);
        }
        Consent { k, level, refused }
    }
}

/// The columns that a choice does not show a reader, bit by bit.
pub(super) fn refused_columns(choice: &Choice<'_>, definition: &Definition, reader: Reader) -> u64 {
    let hidden = (0..definition.columns.len()).filter(|&column| !choice.shows(column, reader.today));
    hidden.fold(0, |bits, column| bits | 1 << column)
}
