//! [`Verified`]: proof by type that something passed the verifier.

use std::fmt;

use crate::Findings;

/// Something that was verified. Only this crate can make one.
///
/// Its fields are private, so that no struct literal makes one elsewhere:
///
/// ```compile_fail,E0451
/// use kohort_model::Release;
/// use kohort_verify::{Findings, Verified};
///
/// fn forge(value: Release, findings: Findings) -> Verified<Release> {
///     Verified { value, findings }
/// }
/// ```
///
/// There is no constructor either:
///
/// ```compile_fail,E0599
/// use kohort_model::Release;
/// use kohort_verify::{Findings, Verified};
///
/// fn forge(value: Release, findings: Findings) -> Verified<Release> {
///     Verified::new(value, findings)
/// }
/// ```
///
/// Nor does a conversion lead there:
///
/// ```compile_fail,E0277
/// use kohort_model::Release;
/// use kohort_verify::Verified;
///
/// fn forge(value: Release) -> Verified<Release> {
///     value.into()
/// }
/// ```
pub struct Verified<T> {
    value: T,
    findings: Findings,
}

impl<T> Verified<T> {
    /// The caller has run every check.
    pub(crate) fn attest(value: T, findings: Findings) -> Self {
        Verified { value, findings }
    }

    /// What was verified.
    pub fn get(&self) -> &T {
        &self.value
    }

    /// What the verifier counted.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// What was verified, no longer marked as such.
    pub fn into_inner(self) -> T {
        self.value
    }
}

/// Shows the findings only: the value holds cells.
impl<T> fmt::Debug for Verified<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified").field("findings", &self.findings).finish_non_exhaustive()
    }
}
