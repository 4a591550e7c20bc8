//! The sections of `report.html` about what the release shows: class sizes, loss, what is left out, and the columns.

use kohort_model::report::{ClassSizeReport, ColumnReport, CountedIn, ReleaseReport, TableReport, Unnamed};
use kohort_plots::{Bar, Frame, bars};

use super::page::{Cell, Page};
use super::sections::{share_bars, who};
use super::words::{count, counted, number, percent};

/// A chart of sizes has at most so many bars.
const MOST_SIZES: usize = 14;
/// A chart of loss has at most so many bars.
const MOST_LOSSES: usize = 40;
/// The page shows the cells of at most so many columns.
const MOST_COLUMNS: usize = 48;
/// The table of common looks has at most so many quasi columns.
const MOST_SHOWN: usize = 12;
/// A cell is shown with at most so many characters.
const MOST_CHARACTERS: usize = 60;

pub(super) fn class_sizes(page: &mut Page, report: &ReleaseReport) {
    page.heading("Class sizes");
    page.paragraph("A class is a group of persons who look the same in every quasi column that the reader knows.");
    let mut charts = Vec::new();
    for reader in report.readers.iter().filter(|reader| !reader.class_sizes.is_empty()) {
        let unit = match reader.counted {
            CountedIn::Persons => "persons",
            CountedIn::PersonsAndRegister => "persons of the table and the register",
            CountedIn::Unknown => "rows",
        };
        let title = if report.readers.len() == 1 { "Classes by size".to_owned() } else { who(reader) };
        let bar = |(label, classes): (String, u64)| Bar { label, value: classes as f64, shown: count(classes) };
        let all: Vec<Bar> = buckets(&reader.class_sizes).into_iter().map(bar).collect();
        charts.push((bars(Frame::Narrow, &title, "classes", &all), format!("At the left: {unit} in a class.")));
    }
    if charts.is_empty() {
        page.paragraph(
            "Persons have several rows, and nothing released tells which rows belong to the same person. So the files show no \
             class sizes in persons; the publisher's verifier counted them.",
        );
    } else {
        page.charts(&charts);
    }
    page.remark(&format!(
        "{} in all quasi columns; {} persons in a class on average.",
        counted(report.release.classes, "class", "classes"),
        number(report.loss.average_class)
    ));
}

/// Sizes with the number of classes of each. Many sizes are put together so that each bucket is about half as wide as its first
/// size.
fn buckets(sizes: &[ClassSizeReport]) -> Vec<(String, u64)> {
    if sizes.len() <= MOST_SIZES {
        return sizes.iter().map(|entry| (count(entry.size), entry.classes)).collect();
    }
    let mut factor = 1.25;
    loop {
        let mut buckets: Vec<(u64, u64, u64)> = Vec::new();
        for entry in sizes {
            match buckets.last_mut() {
                Some((first, last, classes)) if (entry.size as f64) < *first as f64 * factor => {
                    (*last, *classes) = (entry.size, *classes + entry.classes);
                }
                _ => buckets.push((entry.size, entry.size, entry.classes)),
            }
        }
        if buckets.len() <= MOST_SIZES {
            let label = |first: u64, last: u64| match first == last {
                true => count(first),
                false => format!("{} to {}", count(first), count(last)),
            };
            return buckets.into_iter().map(|(first, last, classes)| (label(first, last), classes)).collect();
        }
        factor *= 1.25;
    }
}

pub(super) fn loss(page: &mut Page, report: &ReleaseReport) {
    page.heading("What was lost");
    page.paragraph(&format!(
        "On average a cell of a quasi column covers {} of what its column could say: 0 % means every value is still shown, 100 % means \
         nothing is.",
        percent(report.loss.lm)
    ));
    let mut columns: Vec<(String, f64)> =
        report.loss.columns.iter().map(|(name, loss)| (name.clone(), *loss)).collect();
    columns.sort_by(|(a, loss_a), (b, loss_b)| loss_b.total_cmp(loss_a).then_with(|| a.cmp(b)));
    let n_more = columns.len().saturating_sub(MOST_LOSSES);
    columns.truncate(MOST_LOSSES);
    let mut charts = vec![(share_bars("Loss per column", &columns), String::new())];
    if !report.table_loss.is_empty() {
        let tables: Vec<(String, f64)> = report.table_loss.iter().map(|(name, loss)| (name.clone(), loss.lm)).collect();
        charts.push((share_bars("Loss per table", &tables), String::new()));
    }
    page.charts(&charts);
    if n_more > 0 {
        page.remark(&format!(
            "The {} with the largest loss; all are in report.json.",
            counted(MOST_LOSSES as u64, "column", "columns")
        ));
    }
    let mut rows = Vec::new();
    for table in &report.tables {
        for column in table.columns.iter().take(MOST_LOSSES) {
            let Some(cells) = column.cells else { continue };
            let of_all = |n: u64| percent(n as f64 / (cells.exact + cells.wider + cells.nothing).max(1) as f64);
            rows.push(vec![
                Cell::Text(named(report, table, column)),
                Cell::Number(of_all(cells.exact)),
                Cell::Number(of_all(cells.wider)),
                Cell::Number(of_all(cells.nothing)),
            ]);
        }
    }
    page.table("What the released cells show", &["column", "the value itself", "several values", "nothing"], &rows);
    if let Some(savings) = &report.savings
        && let Some(union) = &savings.union
    {
        page.paragraph(&format!(
            "One release for all audiences loses {}; one k for all columns together would lose {}.",
            percent(savings.release.lm),
            percent(union.lm)
        ));
    }
}

fn named(report: &ReleaseReport, table: &TableReport, column: &ColumnReport) -> String {
    if report.tables.len() == 1 { column.name.clone() } else { format!("{}.{}", table.name, column.name) }
}

pub(super) fn suppression(page: &mut Page, report: &ReleaseReport) {
    page.heading("What is left out");
    let left_out = &report.suppression;
    let of = |n: u64, of: u64| percent(n as f64 / of.max(1) as f64);
    let rows_in: u64 = report.tables.iter().map(|table| table.rows_in).sum();
    let mut rows = vec![vec![
        Cell::Text("persons".to_owned()),
        Cell::Number(count(left_out.persons)),
        Cell::Number(count(report.persons.n_in)),
        Cell::Number(of(left_out.persons, report.persons.n_in)),
    ]];
    if report.register.is_none() {
        rows.push(vec![
            Cell::Text("rows".to_owned()),
            Cell::Number(count(left_out.rows)),
            Cell::Number(count(rows_in)),
            Cell::Number(of(left_out.rows, rows_in)),
        ]);
    }
    rows.push(vec![
        Cell::Text("released quasi cells that tell nothing".to_owned()),
        Cell::Number(count(left_out.cells)),
        Cell::Number(count(left_out.of_cells)),
        Cell::Number(of(left_out.cells, left_out.of_cells)),
    ]);
    page.table("Persons, rows and cells", &["what", "left out", "of", "share"], &rows);
    if report.tables.len() > 1 && report.register.is_none() {
        let row = |table: &TableReport| {
            vec![
                Cell::Text(table.name.clone()),
                Cell::Number(count(table.rows_suppressed)),
                Cell::Number(count(table.rows_in)),
                Cell::Number(of(table.rows_suppressed, table.rows_in)),
            ]
        };
        let rows: Vec<Vec<Cell>> = report.tables.iter().map(row).collect();
        page.table("Rows left out of each table", &["table", "left out", "of", "share"], &rows);
    }
}

pub(super) fn contents(page: &mut Page, report: &ReleaseReport) {
    page.heading("What the release shows");
    page.paragraph(
        "The most frequent cells of each column. A cell is named only if at least k persons share it, although the released files \
         show the others too.",
    );
    let mut n_left = MOST_COLUMNS;
    for table in &report.tables {
        if report.tables.len() > 1 {
            page.subheading(&format!("Table '{}'", table.name));
        }
        let mut charts = Vec::new();
        let mut words = Vec::new();
        for column in table.columns.iter().filter(|column| column.unnamed != Some(Unnamed::Keys)).take(n_left) {
            match (column.unnamed, column.values.is_empty()) {
                (Some(_), _) => words.push(format!(
                    "'{}': {}, none of which is named here, because nothing released tells how many persons hold them.",
                    column.name,
                    counted(column.others.values, "distinct cell", "distinct cells")
                )),
                (None, true) if column.others.values == 0 => {
                    words.push(format!("'{}': no cell holds a value.", column.name));
                }
                (None, true) => words.push(format!(
                    "'{}': {}, none of which k persons share.",
                    column.name,
                    counted(column.others.values, "distinct cell", "distinct cells")
                )),
                (None, false) => charts.push(marginal(table, column)),
            }
        }
        n_left = n_left.saturating_sub(table.columns.len());
        page.charts(&charts);
        page.list(words);
        common(page, table);
    }
    if report.tables.iter().map(|table| table.columns.len()).sum::<usize>() > MOST_COLUMNS {
        page.remark(&format!("The first {MOST_COLUMNS} columns; all are in report.json."));
    }
}

fn marginal(table: &TableReport, column: &ColumnReport) -> (String, String) {
    let share = |rows: u64| rows as f64 / table.rows_out.max(1) as f64;
    let bar = |label: String, rows: u64| Bar { label, value: rows as f64, shown: percent(share(rows)) };
    let mut all: Vec<Bar> = column.values.iter().map(|value| bar(shortened(&value.value), value.rows)).collect();
    if column.nulls > 0 {
        all.push(bar("(no value)".to_owned(), column.nulls));
    }
    if column.others.rows > 0 {
        all.push(bar(format!("{} others", count(column.others.values)), column.others.rows));
    }
    let caption = match column.role.as_str() {
        "quasi" => "",
        "sensitive" => "Sensitive; released as it is.",
        _ => "Released as it is.",
    };
    (bars(Frame::Narrow, &column.name, "rows", &all), caption.to_owned())
}

fn common(page: &mut Page, table: &TableReport) {
    if table.common.is_empty() {
        return;
    }
    let quasi: Vec<&str> =
        table.columns.iter().filter(|column| column.role == "quasi").map(|column| column.name.as_str()).collect();
    let header: Vec<&str> = ["rows"].into_iter().chain(quasi.iter().take(MOST_SHOWN).copied()).collect();
    let row = |look: &kohort_model::report::CommonReport| {
        let cells = look.cells.iter().take(MOST_SHOWN);
        let cells = cells.map(|cell| Cell::Text(cell.as_deref().map_or_else(|| "(no value)".to_owned(), shortened)));
        [Cell::Number(count(look.rows))].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<Cell>> = table.common.iter().map(row).collect();
    page.table("The most common ways to look", &header, &rows);
}

fn shortened(text: impl AsRef<str>) -> String {
    let text = text.as_ref();
    if text.chars().count() <= MOST_CHARACTERS {
        return if text.is_empty() { "(empty text)".to_owned() } else { text.to_owned() };
    }
    text.chars().take(MOST_CHARACTERS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sizes_are_put_together_and_no_class_is_lost() {
        let sizes: Vec<ClassSizeReport> =
            (5..900).map(|size| ClassSizeReport { size, classes: 1 + size % 3 }).collect();
        let buckets = buckets(&sizes);
        assert!(buckets.len() <= MOST_SIZES, "{buckets:?}");
        let n: u64 = sizes.iter().map(|entry| entry.classes).sum();
        assert_eq!(buckets.iter().map(|(_, classes)| classes).sum::<u64>(), n);
        assert!(buckets[0].0.starts_with('5') && buckets[buckets.len() - 1].0.ends_with("899"), "{buckets:?}");
    }
}
