//! A stranger reads releases: a small reader that follows `docs/read-a-release.md` and uses no code of kohort. It must find
//! that every cell can stand for the private value of its row.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::runner::Folder;

/// The cells of a CSV file: `None` for null.
type Row = Vec<Option<String>>;

/// Reads CSV as the page says: quotes as in RFC 4180, and an unquoted cell that equals the word for null is null.
fn read_csv(text: &str, separator: char, null: &str) -> (Vec<String>, Vec<Row>) {
    let mut rows: Vec<Row> = Vec::new();
    let (mut row, mut cell, mut was_quoted, mut is_open) = (Row::new(), String::new(), false, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_open && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => (is_open, was_quoted) = (!is_open, true),
            _ if is_open => cell.push(letter),
            _ if letter == separator || letter == '\n' => {
                let is_null = !was_quoted && cell == null;
                row.push((!is_null).then(|| std::mem::take(&mut cell)));
                (cell, was_quoted) = (String::new(), false);
                if letter == '\n' {
                    rows.push(std::mem::take(&mut row));
                }
            }
            _ => cell.push(letter),
        }
    }
    let names = rows.remove(0).into_iter().map(|name| name.unwrap()).collect();
    (names, rows)
}

/// A number in millionths.
fn number(text: &str, decimal: char) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once(decimal).unwrap_or((digits, ""));
    let is_number =
        !whole.is_empty() && fraction.len() <= 6 && (whole.chars().chain(fraction.chars())).all(|c| c.is_ascii_digit());
    is_number.then(|| format!("{whole}{fraction:0<6}").parse::<i128>().ok().map(|number| sign * number))?
}

fn is_leap(year: i128) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i128, month: i128) -> i128 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since the year 0.
fn days(year: i128, month: i128, day: i128) -> i128 {
    let years: i128 = (0..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    years + (1..month).map(|month| days_of_month(year, month)).sum::<i128>() + day
}

/// A day by the formats that the tests use.
fn date(text: &str, format: &str) -> Option<i128> {
    let parts: Vec<i128> = text.split(['-', '.']).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    match (format, parts.as_slice()) {
        ("%Y-%m-%d", &[year, month, day]) | ("%d.%m.%Y", &[day, month, year]) => Some(days(year, month, day)),
        _ => None,
    }
}

/// A period as its first and last day.
fn period(text: &str, levels: &[&str]) -> Option<(i128, i128)> {
    let has = |level: &str| levels.contains(&level);
    let year = |text: &str| (text.len() == 4).then(|| text.parse::<i128>().ok())?;
    let months = |year, first, last| Some((days(year, first, 1), days(year, last, days_of_month(year, last))));
    if let Some(first) = text.strip_suffix('s').filter(|_| has("decade")).and_then(year) {
        return Some((days(first, 1, 1), days(first + 9, 12, 31)));
    }
    if let Some(year) = year(text).filter(|_| has("year")) {
        return months(year, 1, 12);
    }
    let (of, rest) = text.split_once('-')?;
    let of = year(of)?;
    match rest.strip_prefix('Q') {
        Some(quarter) if has("quarter") => {
            let quarter: i128 = quarter.parse().ok()?;
            months(of, 3 * quarter - 2, 3 * quarter)
        }
        None if has("month") && rest.len() == 2 => {
            let month = rest.parse().ok()?;
            months(of, month, month)
        }
        _ => None,
    }
}

/// A column as the manifest describes it.
struct Stranger {
    about: Value,
    /// The values of each label.
    listed: BTreeMap<String, BTreeSet<String>>,
}

impl Stranger {
    fn new(folder: &Folder, about: &Value) -> Self {
        let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        if let Some(file) = about["labels"]["file"].as_str() {
            let (names, rows) = read_csv(&folder.read(&format!("out/{file}")), ',', "");
            assert_eq!(names, ["label", "value"]);
            for row in rows {
                let [label, value] = <[_; 2]>::try_from(row).unwrap().map(Option::unwrap);
                listed.entry(label).or_default().insert(value);
            }
        }
        Stranger { about: about.clone(), listed }
    }

    /// The place of a value in the order of its type; `None` if the type has no order, or the text is no such value.
    fn place(&self, text: &str) -> Option<i128> {
        match self.about["type"].as_str().unwrap() {
            "integer" => number(text, '?'),
            "decimal" | "float" => {
                number(text, self.about["decimal"].as_str().map_or('.', |sign| sign.chars().next().unwrap()))
            }
            "date" => date(text, self.about["date_format"].as_str().unwrap_or("%Y-%m-%d")),
            _ => None,
        }
    }

    /// The bounds of a range that ends with this character.
    fn range(&self, cell: &str, end: char) -> Option<(i128, i128)> {
        let is_comma = self.about["decimal"] == "," && self.about["type"] != "integer";
        let inside = cell.strip_prefix('[')?.strip_suffix(end)?;
        let (low, high) = inside.split_once(if is_comma { ';' } else { ',' })?;
        Some((self.place(low)?, self.place(high)?))
    }

    /// Whether a cell may stand for a value.
    fn may_be(&self, cell: Option<&str>, value: Option<&str>) -> bool {
        let labels = &self.about["labels"];
        let Some(cell) = cell else { return value.is_none() };
        let rule = labels["rule"].as_str().unwrap();
        let is_everything = match rule {
            "hierarchy" => labels["root"] == cell,
            "mask" => labels["width"] == cell.chars().count() && cell.chars().all(|letter| letter == '*'),
            _ => cell == "*",
        };
        if is_everything {
            return true;
        }
        let Some(value) = value else { return false };
        let is_itself = || cell == value || (self.place(cell).is_some() && self.place(cell) == self.place(value));
        let is_within =
            |(low, high): (i128, i128)| self.place(value).is_some_and(|place| low <= place && place <= high);
        match rule {
            "values" | "flat" => is_itself(),
            "ranges" => self.range(cell, ']').map_or_else(is_itself, is_within),
            "steps" if self.about["type"] == "integer" => self.range(cell, ']').map_or_else(is_itself, is_within),
            "steps" => self.range(cell, ')').map_or_else(is_itself, |(low, high)| is_within((low, high - 1))),
            "dates" => {
                let levels: Vec<&str> =
                    labels["levels"].as_array().unwrap().iter().map(|level| level.as_str().unwrap()).collect();
                period(cell, &levels).map_or_else(is_itself, is_within)
            }
            "mask" => {
                let is_right = labels["side"] == "right";
                let kept = if is_right { cell.trim_end_matches('*') } else { cell.trim_start_matches('*') };
                let n_letters = value.chars().count();
                if labels["width"] != cell.chars().count() || kept == cell {
                    return is_itself();
                }
                let shows = if is_right { value.starts_with(kept) } else { value.ends_with(kept) };
                shows && n_letters > kept.chars().count() && n_letters <= cell.chars().count()
            }
            "hierarchy" => self.listed[cell].contains(value),
            other => panic!("the page does not know the rule {other}"),
        }
    }
}

/// Numbers that are the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

const WORDS: [&str; 6] = ["a", "ab", "b*c", "NA", "semi;colon", "say \"no\""];

const TREE: &str = "\
\"a, 1\";letters;all\nb;letters;all\nc;letters;all\n1;digits;all\n2;digits;all\n3;digits;all\nnobody;all\nnothing;none;all\n";

const COLUMNS: &str = "\
whole = \"quasi\"
steps = { role = \"quasi\", hierarchy = { steps = [5, 20] } }
weight = { role = \"quasi\", hierarchy = { steps = [0.5, 2.5] } }
born = { role = \"quasi\", hierarchy = \"date\" }
died = \"quasi\"
code = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }
back = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"left\" } }
tree = { role = \"quasi\", hierarchy = \"tree.csv\" }
sex = { role = \"quasi\", hierarchy = \"flat\" }
word = \"quasi\"
pay = { role = \"sensitive\", t = 0.9, distance = \"ordered\" }
note = \"plain\"
";

/// A table with every kind of cell. The publisher decides what a null looks like.
fn table(dice: &mut Dice, n_rows: usize, comma: char, iso: bool) -> Vec<Row> {
    let day = |dice: &mut Dice| {
        let (year, month, day) = (1958 + dice.roll(50), 1 + dice.roll(12), 1 + dice.roll(28));
        if iso { format!("{year}-{month:02}-{day:02}") } else { format!("{day:02}.{month:02}.{year}") }
    };
    let row = |_| {
        let weight = format!("{}{comma}{}", 40 + dice.roll(40), dice.roll(100));
        let code: String = (0..3 + dice.roll(3)).map(|_| char::from(b'0' + dice.roll(3) as u8)).collect();
        let cells = [
            (dice.roll(90) as i64 - 20).to_string(),
            (dice.roll(90) as i64 - 20).to_string(),
            weight,
            day(dice),
            day(dice),
            code.clone(),
            code,
            ["a, 1", "b", "c", "1", "2", "3"][dice.roll(6) as usize].to_owned(),
            ["f", "m", "x"][dice.roll(3) as usize].to_owned(),
            WORDS[dice.roll(6) as usize].to_owned(),
            format!("{}{comma}{}", dice.roll(5000), dice.roll(10)),
            WORDS[dice.roll(6) as usize].to_owned(),
        ];
        cells.map(|cell| (dice.roll(40) > 0).then_some(cell)).to_vec()
    };
    (0..n_rows).map(row).collect()
}

fn spelled(rows: &[Row], separator: char) -> String {
    let names: Vec<&str> = COLUMNS.lines().map(|line| line.split_once(' ').unwrap().0).collect();
    let mut text = names.join(&separator.to_string()) + "\n";
    for row in rows {
        let cell = |cell: &Option<String>| match cell {
            None => "NA".to_owned(),
            Some(cell) => format!("\"{}\"", cell.replace('"', "\"\"")),
        };
        text += &(row.iter().map(cell).collect::<Vec<_>>().join(&separator.to_string()) + "\n");
    }
    text
}

#[test]
fn a_stranger_finds_every_private_value_in_what_its_cell_says() {
    let mut told: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let jobs = [
        ("auto", ';', true, false),
        ("mondrian", '\t', false, true),
        ("cluster", ',', false, false),
        ("full-domain", '|', true, true),
    ];
    for (seed, (algorithm, separator, has_comma, iso)) in jobs.into_iter().enumerate() {
        let mut dice = Dice(seed as u64 + 7);
        let n_rows = if algorithm == "full-domain" { 300 } else { 120 };
        let private = table(&mut dice, n_rows, if has_comma { ',' } else { '.' }, iso);
        let format = if iso { "" } else { "date_format = \"%d.%m.%Y\"\n" };
        let decimal = if has_comma { "decimal = \",\"\n" } else { "" };
        let separator_of_spec = if separator == '\t' { "\\t".to_owned() } else { separator.to_string() };
        let spec = format!(
            "k = 3\norder = \"input\"\nalgorithm = \"{algorithm}\"\n[tables.t]\nfile = \"t.csv\"\n\
             separator = \"{separator_of_spec}\"\n{decimal}{format}null = [\"NA\"]\n[tables.t.columns]\n{COLUMNS}"
        );
        let folder =
            Folder::with(&[("release.toml", &spec), ("t.csv", &spelled(&private, separator)), ("tree.csv", TREE)]);
        let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--accept-risks"]);
        assert_eq!(ran.code, 0, "{algorithm}: {ran}");
        for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
            let ran = folder.run_in_vain(arguments);
            assert_eq!(ran.code, 0, "{algorithm}: {ran}");
        }

        let manifest: Value = serde_json::from_str(&folder.read("out/manifest.json")).unwrap();
        let entry = &manifest["tables"][0];
        let csv = &entry["csv"];
        let sign = csv["separator"].as_str().unwrap().chars().next().unwrap();
        let text = folder.read(&format!("out/{}", entry["file"].as_str().unwrap()));
        let (names, rows) = read_csv(&text, sign, csv["null"].as_str().unwrap());
        assert_eq!((rows.len(), names.len()), (private.len(), private[0].len()));
        for (column, name) in names.iter().enumerate() {
            let about = &entry["columns"][name];
            let (stranger, all) = (Stranger::new(&folder, about), &private);
            for (row, (released, private)) in rows.iter().zip(&private).enumerate() {
                let [cell, value] = [&released[column], &private[column]].map(Option::as_deref);
                if about["role"] != "quasi" {
                    assert_eq!(cell, value, "{algorithm}: {name} in row {row}");
                    continue;
                }
                assert!(stranger.may_be(cell, value), "{algorithm}: {name} in row {row}: {cell:?} is not {value:?}");
                let (n_labels, n_others) = told.entry(about["labels"]["rule"].to_string()).or_default();
                *n_labels += usize::from(cell != value);
                // The reader must also reject values of other rows.
                *n_others += all.iter().filter(|other| !stranger.may_be(cell, other[column].as_deref())).count();
            }
        }
    }
    for rule in ["ranges", "steps", "dates", "mask", "hierarchy", "flat", "values"] {
        let (n_labels, n_others) = told[&format!("\"{rule}\"")];
        assert!(n_labels > 0 && n_others > 0, "{rule}: {n_labels} labels, {n_others} values apart");
    }
}
