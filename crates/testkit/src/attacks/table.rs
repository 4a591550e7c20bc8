//! [`table()`]: the catalogue as the tables that the documents show.

use super::statements::Statements;
use super::{Attack, Count, Promise, Side};

/// The line of a page after which the tables begin.
pub const BEGIN: &str = "<!-- cargo xtask attack --write: begin -->";
/// The line of a page before which the tables end.
pub const END: &str = "<!-- cargo xtask attack --write: end -->";

/// Tables of attacks that were run, and of those that are run as SQL.
pub fn table(ran: &[(Attack, Vec<Side>)], statements: &[Statements]) -> String {
    let mut text = "\
| system | attack | attacker knows | does | gets on a naive release | gets on kohort's | promised |
| --- | --- | --- | --- | --- | --- | --- |
"
    .to_owned();
    for (attack, sides) in ran {
        let (naive, ours): (Vec<&Side>, Vec<&Side>) = sides.iter().partition(|side| side.promised == Promise::Naive);
        let gets = |sides: &[&Side]| match sides {
            [] => "-".to_owned(),
            sides => lines(sides, |side| format!("{}: **{}**", side.made, shown(side.count))),
        };
        let does = format!("{}; counted: {}", attack.does, attack.success);
        let promised = lines(&ours, |side| promise(side.promised));
        row(
            &mut text,
            &[attack.system.word(), attack.name, attack.knows, &does, &gets(&naive), &gets(&ours), &promised],
        );
    }
    text += "\n| attack on A-views by SQL | wanted | fails | statements |\n| --- | --- | --- | --- |\n";
    for file in statements {
        let link = format!("[{0}](../crates/sql/tests/attacks/{0}.slt)", file.name);
        row(&mut text, &[&link, &file.wanted, &file.fails, &file.n_sent.to_string()]);
    }
    text
}

fn row(text: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    *text += &format!("| {} |\n", cells.join(" | "));
}

fn lines(sides: &[&Side], line: impl Fn(&Side) -> String) -> String {
    sides.iter().map(|side| line(side)).collect::<Vec<_>>().join("<br>")
}

fn shown(count: Count) -> String {
    let Count { tried, succeeded, by_chance } = count;
    match by_chance {
        0.0 => format!("{succeeded} of {tried}"),
        _ => format!("{succeeded} of {tried}, by a guess {by_chance:.0}"),
    }
}

fn promise(promised: Promise) -> String {
    match promised {
        Promise::Naive => String::new(),
        Promise::Nobody => "nobody".to_owned(),
        Promise::Chance => "no more than by a guess".to_owned(),
        Promise::Share(share) => format!("{:.0} % at most", 100.0 * share),
        Promise::Nothing(helps) => format!("**nothing**; helps: {helps}"),
    }
}

/// A page with these tables between its two marks; `None` if the page has no marks.
pub fn page_with(page: &str, tables: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{tables}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attacks::System;

    #[test]
    fn a_row_says_what_was_got_and_promised() {
        let attack = Attack {
            name: "join",
            system: System::Tables,
            knows: "a list",
            does: "joins",
            success: "persons found",
            run: Vec::new,
        };
        let sides = vec![
            Side::naive("names removed", Count { tried: 10, succeeded: 9, by_chance: 0.0 }),
            Side::kohort("`k = 5`", Promise::Nobody, Count { tried: 10, succeeded: 0, by_chance: 0.0 }),
            Side::kohort("a|b", Promise::Share(0.3), Count { tried: 10, succeeded: 2, by_chance: 2.4 }),
        ];
        let text = table(&[(attack, sides)], &[]);
        let row = text.lines().nth(2).unwrap();
        let expected = "| tables | join | a list | joins; counted: persons found | names removed: **9 of 10** | \
                        `k = 5`: **0 of 10**<br>a\\|b: **2 of 10, by a guess 2** | nobody<br>30 % at most |";
        assert_eq!(row, expected);
    }

    #[test]
    fn a_page_keeps_what_is_around_its_tables() {
        let page = format!("# Title\n\n{BEGIN}\nold\n{END}\nbelow\n");
        let new = page_with(&page, "new\n").unwrap();
        assert_eq!(new, format!("# Title\n\n{BEGIN}\n\nnew\n\n{END}\nbelow\n"));
        assert_eq!(page_with(&new, "new\n").unwrap(), new);
        assert_eq!(page_with("# Title\n", "new\n"), None);
    }
}
