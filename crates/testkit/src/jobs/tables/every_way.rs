//! [`verify_tables_every_way`]: a release of many tables, verified in every way there is.

use kohort_core::relational::AnonymizedTables;
use kohort_verify::{
    Findings, ReleasedLink, Suppressed, SuppressionLimit, TableFindings, TablesAgainst, verify_tables,
    verify_tables_against, verify_tables_alone, verify_tables_written,
};

use crate::generate::snowflake::TablesJob;
use crate::oracle::views::as_read;

/// What the verifier found in a release of many tables.
pub struct FoundEveryWay {
    /// The findings in the release in memory.
    pub in_memory: Findings,

    /// The findings in the files of the release, read back.
    pub written: Findings,
}

/// Verifies a release in memory, its files read back, the files alone, and the files against the private tables. All of
/// them must count the same, and the loss must be the one that the engine states.
///
/// # Errors
/// The violations of the first way that refuses the release, or the first figures that differ.
pub fn verify_tables_every_way(job: &TablesJob, done: &AnonymizedTables) -> Result<FoundEveryWay, String> {
    let requirements = job.requirements();
    let verified = verify_tables(
        done.release.clone(),
        &job.tables,
        &job.schema,
        &requirements,
        SuppressionLimit::share(job.spec.max_suppressed),
    )
    .map_err(|violations| format!("release: {violations}"))?;
    let (files, _) = as_read(&done.release, &job.tables, &job.schema);
    let written = verify_tables_written(&files, &verified, &job.tables, &job.schema, &requirements)
        .map_err(|violations| format!("written: {violations}"))?;
    if counts(&written) != counts(verified.findings()) {
        return Err(format!("the files give {written:?}, and the release in memory {:?}", verified.findings()));
    }
    let links = ReleasedLink::of(&job.schema, &job.tables);
    let alone =
        verify_tables_alone(&files, &links, &requirements).map_err(|violations| format!("alone: {violations}"))?;
    if counts(&alone) != counts(&written) {
        return Err(format!("the files alone give {alone:?}, and with their origins {written:?}"));
    }
    let suppressed: Vec<Suppressed> = written.tables.iter().map(|table| table.suppressed.unwrap_or_default()).collect();
    let originals = TablesAgainst {
        originals: &job.tables,
        schema: &job.schema,
        requirements: &requirements,
        suppressed: &suppressed,
        limit: SuppressionLimit::share(job.spec.max_suppressed),
        keys: job.spec.keys,
    };
    let against = verify_tables_against(&files, &originals).map_err(|violations| format!("against: {violations}"))?;
    let counted = against.loss.into_iter().chain(against.tables.into_iter().filter_map(|table| table.loss));
    for (counted, lost) in counted.zip(std::iter::once(&done.loss).chain(&done.loss_of_tables)) {
        let of_persons = counted.persons.ok_or("persons were not counted")?;
        let pairs = [
            (counted.lm, lost.lm),
            (counted.ncp, lost.ncp),
            (counted.uncertainty_penalty, lost.uncertainty_penalty),
            (of_persons.dm, lost.dm),
            (of_persons.average_class, lost.average_class),
            (of_persons.k_deviation.unwrap_or(lost.k_deviation), lost.k_deviation),
        ];
        if pairs.iter().any(|(counted, lost)| (counted - lost).abs() > 1e-9 * lost.abs().max(1.0)) {
            return Err(format!("the verifier counts the loss {counted:?}, and the engine says {lost:?}"));
        }
    }
    Ok(FoundEveryWay { in_memory: verified.findings().clone(), written })
}

/// The figures that are whole numbers; shares may differ in their last bits.
fn counts(findings: &Findings) -> Vec<u64> {
    let of_table = |table: &TableFindings| {
        let diversity = table.sensitive.iter().map(|sensitive| sensitive.l);
        [table.rows, table.classes].into_iter().chain(diversity).collect::<Vec<u64>>()
    };
    let whole = [findings.k, findings.persons, findings.classes];
    whole.into_iter().chain(findings.tables.iter().flat_map(of_table)).collect()
}
