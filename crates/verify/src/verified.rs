//! [`Verified`]: proof by type that something passed the verifier.

use std::fmt;

use kohort_model::Release;

use crate::Findings;

/// A type that the verifier can vouch for.
pub trait Verifiable {
    /// The counts that verification yields.
    type Findings: fmt::Debug;
}

impl Verifiable for Release {
    type Findings = Findings;
}

/// A value that was verified. Only this crate can make one.
///
/// The fields are private, so no other crate can write a struct literal:
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
/// No constructor is public:
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
/// No conversion makes one:
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
    /// Marks a value as verified. The caller must have run every check.
    pub(crate) fn attest(value: T, findings: T::Findings) -> Self {
        Verified { value, findings }
    }

    /// The verified value.
    pub fn get(&self) -> &T {
        &self.value
    }

    /// The counts of the verifier.
    pub fn findings(&self) -> &T::Findings {
        &self.findings
    }

    /// The value, no longer marked as verified.
    pub fn into_inner(self) -> T {
        self.value
    }
}

/// Shows only the findings, because the value contains cells.
impl<T: Verifiable> fmt::Debug for Verified<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified").field("findings", &self.findings).finish_non_exhaustive()
    }
}
