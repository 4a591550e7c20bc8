//! [`SuppressionLimit`]: how many persons may be left out of a release; and how many rows of a child table.

use crate::Violation;

/// Without this tolerance, rounding would refuse the 29th of 100 persons under a limit of 0.29.
const TOLERANCE: f64 = 1e-9;

/// The largest share of a table's persons that may be left out of its release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuppressionLimit(f64);

impl SuppressionLimit {
    /// Everybody must be in the release.
    pub const NOBODY: SuppressionLimit = SuppressionLimit(0.0);

    /// At most this share, from 0 to 1.
    pub const fn share(share: f64) -> Self {
        SuppressionLimit(share)
    }

    /// The violation if `n_left_out` of `n_persons` are too many.
    pub fn exceeded(self, n_left_out: u64, n_persons: u64) -> Option<Violation> {
        (!is_within(n_left_out, n_persons, self.0)).then_some(Violation::TooManySuppressed {
            n: n_left_out,
            n_persons,
            limit: self.0,
        })
    }
}

/// The violation if `n_left_out` of a child table's `n_rows` are more than this share, from 0 to 1.
pub fn too_many_rows_left_out(n_left_out: u64, n_rows: u64, limit: f64) -> Option<Violation> {
    let violation = Violation::TooManyRowsLeftOut { n: n_left_out, n_rows, limit };
    (!is_within(n_left_out, n_rows, limit)).then_some(violation)
}

fn is_within(n_left_out: u64, n_all: u64, share: f64) -> bool {
    n_left_out as f64 <= share * n_all as f64 + TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_share_allows_may_be_left_out_and_not_one_more() {
        let limit = SuppressionLimit::share(0.29);
        assert_eq!(limit.exceeded(29, 100), None);
        assert_eq!(limit.exceeded(30, 100), Some(Violation::TooManySuppressed { n: 30, n_persons: 100, limit: 0.29 }));
        assert_eq!(SuppressionLimit::NOBODY.exceeded(0, 100), None);
        assert!(SuppressionLimit::NOBODY.exceeded(1, 1_000_000).is_some());
        assert_eq!(SuppressionLimit::share(1.0).exceeded(7, 7), None);
    }

    #[test]
    fn rows_of_a_child_table_are_limited_like_persons() {
        assert_eq!(too_many_rows_left_out(29, 100, 0.29), None);
        let exceeded = Violation::TooManyRowsLeftOut { n: 30, n_rows: 100, limit: 0.29 };
        assert_eq!(too_many_rows_left_out(30, 100, 0.29), Some(exceeded));
        assert_eq!(too_many_rows_left_out(0, 0, 0.0), None);
        assert!(too_many_rows_left_out(1, 10, f64::NAN).is_some());
    }

    #[test]
    fn a_share_that_is_no_number_allows_nothing() {
        assert!(SuppressionLimit::share(f64::NAN).exceeded(0, 10).is_some());
    }
}
