//! [`html`]: the page `owner-report.html`, for the owner of the private tables alone.

use kohort_model::report::{
    AssociationMeasure, AssociationReport, CostFigures, CostReport, MarginalReport, OwnerReport, PopulationReport,
    SumReport,
};
use kohort_plots::{Bar, Frame, Pair, bars, pairs};

use super::page::{Cell, Page, Tone};
use super::words::{count, counted, number, percent, quoted};

/// So many pairs of columns are shown.
const MOST_ASSOCIATIONS: usize = 30;

/// The page of an owner's report.
pub(super) fn html(report: &OwnerReport) -> String {
    let mut page = Page::new("Anonymization report for the owner of the data");
    page.remark("Made from the release and from the private tables.");
    page.begin();
    let first = "Do not give this page away with the release.";
    let why = "Its figures come from the private tables. Readers of the release could learn from the difference.";
    page.boxed(Tone::Bad, first, &[why.to_owned()]);
    risk(&mut page, report);
    population(&mut page, report);
    marginals(&mut page, report);
    associations(&mut page, report);
    target(&mut page, report);
    costs(&mut page, report);
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

fn population(page: &mut Page, report: &OwnerReport) {
    let Some(population) = &report.population else { return };
    page.heading("Risk in the population");
    page.paragraph(&format!(
        "The private table is taken for a sample of {}: {} of them. How many of these are alone with their values is estimated by four models, \
         which differ in what they assume of the classes that were not sampled. None of them can be proven from the table.",
        counted(population.persons, "person", "persons"),
        percent(population.share)
    ));
    let name = |model: &str| match model {
        "poisson" => "Poisson (Skinner, Holmes 1998)",
        "zayatz" => "Zayatz (1991)",
        "snb" => "Slide negative binomial (Chen, Keller-McNulty 1998)",
        _ => "Pitman (Hoshino 2001)",
    };
    let after = population.after.as_ref();
    let known = |value: Option<String>| Cell::Number(value.unwrap_or_else(|| "by the register".to_owned()));
    let of_all = |persons: f64| percent(persons / population.persons.max(1) as f64);
    let rows = population.before.alone.iter().enumerate().map(|(position, before)| {
        let after = after.map(|after| number(after.alone[position].persons.round()));
        vec![
            Cell::Text(name(&before.model).to_owned()),
            Cell::Number(number(before.persons.round())),
            Cell::Number(of_all(before.persons)),
            known(after),
        ]
    });
    let header = ["model", "alone before", "share of the population", "alone after"];
    page.table("Persons who are alone in the population", &header, &rows.collect::<Vec<_>>());
    let row = |name: &str, of: fn(&PopulationReport) -> f64| {
        vec![
            Cell::Text(name.to_owned()),
            Cell::Number(percent(of(&population.before))),
            known(after.map(|after| percent(of(after)))),
        ]
    };
    let rows = [row("highest", |report| report.highest_risk), row("average", |report| report.average_risk)];
    page.table("Chance of a journalist, by the Poisson model", &["risk", "before", "after"], &rows);
}

fn associations(page: &mut Page, report: &OwnerReport) {
    page.subheading("How strongly two columns go together");
    if report.associations.is_empty() {
        page.paragraph("There are no two columns of which this is known.");
        return;
    }
    page.paragraph(
        "Ranks are correlated where both columns have an order, from -1 to 1; for others it is Cramér's V, from 0 to 1. After is what a \
         reader expects who spreads rows evenly over the values of a label.",
    );
    let row = |pair: &AssociationReport| {
        let shown =
            |value: Option<f64>| Cell::Number(value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}")));
        vec![
            Cell::Text(format!("{} and {}", pair.columns.0, pair.columns.1)),
            Cell::Text(match pair.measure {
                AssociationMeasure::RankCorrelation => "ranks".to_owned(),
                AssociationMeasure::CramersV => "Cramér's V".to_owned(),
            }),
            shown(pair.before),
            shown(pair.after),
        ]
    };
    // Those that were strongest before say most.
    let mut strongest: Vec<&AssociationReport> = report.associations.iter().collect();
    let strength = |pair: &AssociationReport| pair.before.unwrap_or(0.0).abs();
    strongest.sort_by(|one, other| strength(other).total_cmp(&strength(one)));
    let n_more = strongest.len().saturating_sub(MOST_ASSOCIATIONS);
    strongest.truncate(MOST_ASSOCIATIONS);
    let rows: Vec<Vec<Cell>> = strongest.into_iter().map(row).collect();
    page.table("Associations, strongest first", &["columns", "measure", "before", "after"], &rows);
    if n_more > 0 {
        page.remark(&format!("{} more pairs are in owner-report.json.", count(n_more as u64)));
    }
}

fn target(page: &mut Page, report: &OwnerReport) {
    let Some(target) = &report.target else { return };
    page.heading(&format!("How well '{}' can be predicted", target.column));
    page.paragraph(&format!(
        "Naive Bayes predicts one of {} from {}. It was trained on {} of two thirds of the persons, and tested on {} private rows of the \
         others, who are not in that release. It is one simple classifier: others may do better, before and after.",
        counted(target.answers, "answer", "answers"),
        if target.from.is_empty() { "nothing".to_owned() } else { quoted(&target.from) },
        counted(target.trained, "row", "rows"),
        count(target.tested)
    ));
    let bar = |name: &str, share: f64| Bar { label: name.to_owned(), value: 100.0 * share, shown: percent(share) };
    let mut all = vec![bar("most frequent", target.most_frequent), bar("private rows", target.before)];
    all.extend(target.after.map(|after| bar("a release", after)));
    page.charts(&[(bars(Frame::Narrow, "Right answers", "%", &all), "Of the rows that were tested: if the answer is always the most frequent one, if private rows train, and if a release trains."
        .to_owned())]);
    if let Some(why) = &target.without {
        page.paragraph(&format!("No release trained: {why}."));
    }
}

fn costs(page: &mut Page, report: &OwnerReport) {
    let Some(costs) = &report.costs else { return };
    page.heading("What each column and each requirement costs");
    page.paragraph(
        "The release was made again without one of them at a time. Saved is by how much the loss of the other quasi columns shrinks, in \
         LM from 0 to 1; below 0, the search found a worse release by chance.",
    );
    let figures = |figures: CostFigures| {
        [
            Cell::Number(number(figures.loss)),
            Cell::Number(count(figures.suppressed)),
            Cell::Number(count(figures.classes)),
            Cell::Number(count(figures.k)),
        ]
    };
    let header = ["without", "saved", "loss", "left out", "classes", "k"];
    let mut table = |caption: &str, all: &[CostReport]| {
        let mut rows = vec![
            [Cell::Text("nothing".to_owned()), Cell::Number("–".to_owned())]
                .into_iter()
                .chain(figures(costs.all))
                .collect::<Vec<Cell>>(),
        ];
        rows.extend(all.iter().filter_map(|cost| {
            let saved = cost.saved.map_or_else(|| "–".to_owned(), |saved| format!("{saved:+.4}"));
            let first = [Cell::Text(cost.without.clone()), Cell::Number(saved)];
            Some(first.into_iter().chain(figures(cost.figures?)).collect())
        }));
        page.table(caption, &header, &rows);
        let unreachable = all.iter().filter_map(|cost| Some((cost, cost.unreachable.as_ref()?)));
        page.list(unreachable.map(|(cost, why)| format!("Without {} there is no release: {why}.", cost.without)));
    };
    if !costs.columns.is_empty() {
        table("If a quasi column were plain", &costs.columns);
    }
    table("Without a requirement", &costs.requirements);
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
