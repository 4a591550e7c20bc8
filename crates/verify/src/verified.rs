//! [`Verified`]: proof by type that something passed the verifier.

use std::fmt;

use kohort_model::Release;

use crate::Findings;

/// Something that the verifier can vouch for.
pub trait Verifiable {
    /// What the verifier counts on the way.
    type Findings: fmt::Debug;
}

impl Verifiable for Release {
    type Findings = Findings;
}

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
pub struct Verified<T: Verifiable> {
    value: T,
    findings: T::Findings,
}

impl<T: Verifiable> Verified<T> {
    /// The caller has run every check.
    pub(crate) fn attest(value: T, findings: T::Findings) -> Self {
        Verified { value, findings }
    }

    /// What was verified.
    pub fn get(&self) -> &T {
        &self.value
    }

    /// What the verifier counted.
    pub fn findings(&self) -> &T::Findings {
        &self.findings
    }

    /// What was verified, no longer marked as such.
    pub fn into_inner(self) -> T {
        self.value
    }
}

/// Shows the findings only: the value holds cells.
impl<T: Verifiable> fmt::Debug for Verified<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified").field("findings", &self.findings).finish_non_exhaustive()
    }
}
