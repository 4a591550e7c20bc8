//! [`html`]: the page `owner-report.html`, for the owner of the private tables alone.

use kohort_model::report::{MarginalReport, OwnerReport, SumReport};
use kohort_plots::{Frame, Pair, pairs};

use super::page::{Cell, Page, Tone};
use super::words::{count, number, percent};

/// The page of an owner's report.
pub(super) fn html(report: &OwnerReport) -> String {
    let mut page = Page::new("Anonymization report for the owner of the data");
    page.remark("Made from the release and from the private tables.");
    page.begin();
    let first = "Do not give this page away with the release.";
    let why = "Its figures come from the private tables. Readers of the release could learn from the difference.";
    page.boxed(Tone::Bad, first, &[why.to_owned()]);
    risk(&mut page, report);
    marginals(&mut page, report);
    sums(&mut page, report);
    page.finish(&format!("Made by kohort {}. The same figures for programs are in owner-report.json.", report.kohort))
}

fn risk(page: &mut Page, report: &OwnerReport) {
    page.heading("Risk before and after");
    page.paragraph(&format!(
        "Persons who were alone with their values before: {}; after: {}. Before means: if the quasi columns were released as they are.",
        count(report.unique.0),
        count(report.unique.1)
    ));
    let row = |both: &kohort_model::report::AboveBeforeAfter| {
        vec![
            Cell::Text(format!("above {}", percent(both.before.risk))),
            Cell::Number(count(both.before.persons)),
            Cell::Number(percent(both.before.share)),
            Cell::Number(count(both.after.persons)),
            Cell::Number(percent(both.after.share)),
        ]
    };
    let rows: Vec<Vec<Cell>> = report.above.iter().map(row).collect();
    let header = ["risk", "persons before", "share before", "persons after", "share after"];
    page.table("Persons above a threshold", &header, &rows);
}

fn marginals(page: &mut Page, report: &OwnerReport) {
    page.heading("Marginals before and after");
    page.paragraph(&format!(
        "Each bin holds at least {} persons. After is what a reader expects who spreads the rows of a label evenly over its values, as \
         kohort estimate does.",
        count(report.k)
    ));
    let chart = |marginal: &MarginalReport| {
        let pair = |bin: &kohort_model::report::BinReport| {
            let after = bin.after.unwrap_or(0.0);
            let shown = bin.after.map_or_else(|| "not known".to_owned(), |after| count(after.round().max(0.0) as u64));
            Pair { label: bin.label.clone(), first: (bin.before as f64, count(bin.before)), second: (after, shown) }
        };
        let all: Vec<Pair> = marginal.bins.iter().map(pair).collect();
        let caption = match marginal.distance {
            Some(distance) => format!("{} of the rows would have to move to undo the difference.", percent(distance)),
            None => "Readers can't estimate this column.".to_owned(),
        };
        (pairs(Frame::Narrow, &marginal.column, "rows", ["private", "release"], &all), caption)
    };
    let charts: Vec<(String, String)> =
        report.marginals.iter().filter(|marginal| !marginal.bins.is_empty()).map(chart).collect();
    page.charts(&charts);
    page.subheading("Two columns at once");
    match (report.pairs.median_error, report.pairs.largest_error) {
        (Some(median), Some(largest)) => page.paragraph(&format!(
            "Counts of two bins at once that a reader estimates are off by {} in the median and by {} at most, over {} pairs of bins with at \
             least {} rows each.",
            percent(median),
            percent(largest),
            count(report.pairs.n),
            count(report.k)
        )),
        _ => page.paragraph("No pair of bins has enough rows, or readers can't estimate the columns."),
    }
}

fn sums(page: &mut Page, report: &OwnerReport) {
    page.heading("Totals and means of numbers that are released as they are");
    if report.sums.is_empty() {
        page.paragraph("There is no such column.");
        return;
    }
    page.paragraph("They change only by the persons and rows that are left out.");
    let mean = |sum: &SumReport| sum.mean.map_or_else(|| "–".to_owned(), number);
    let row = |sums: &kohort_model::report::SumsReport| {
        vec![
            Cell::Text(format!("{}.{}", sums.table, sums.column)),
            Cell::Number(number(sums.before.sum)),
            Cell::Number(number(sums.after.sum)),
            Cell::Number(mean(&sums.before)),
            Cell::Number(mean(&sums.after)),
        ]
    };
    let rows: Vec<Vec<Cell>> = report.sums.iter().map(row).collect();
    let header = ["column", "total before", "total after", "mean before", "mean after"];
    page.table("Totals and means", &header, &rows);
}
