//! `auto` on Adult with requirements on sensitive values.

use std::error::Error;
use std::path::Path;

use kohort_core::anonymize;
use kohort_io::load;
use kohort_model::{Silent, Spec};

use super::{ARX_AT_ITS_BEST, AUTO_BY_LEVELS, N_RUNS, QUASI, SENSITIVE, columns_text};
use crate::measure::{Cost, timed};
use crate::report::{Grid, number};

const K: u32 = 5;

pub(super) const EXPLANATION: &str = "\
The same with requirements on sensitive values beside k = 5: distinct values (l) and t-closeness with equal distances.
*auto* has ARX's hierarchy of ages. Salary is sensitive beside the 8 quasi columns; where occupation is, the 7 others are
quasi. CPU seconds are medians of 3 as below.
";

/// Requirements on a sensitive column, and what ARX loses with them at its best.
struct Asked {
    name: &'static str,
    column: &'static str,
    requirement: &'static str,
    loss_of_arx: &'static str,
    cpu_of_arx: &'static str,
}

const ASKED: [Asked; 4] = [
    asked("salary, l = 2", SENSITIVE, "l = 2", "0.1621", "31"),
    asked("salary, t = 0.3", SENSITIVE, "t = 0.3", "0.1781", "379"),
    asked("occupation, l = 2", "occupation", "l = 2", "0.0287", "25"),
    asked("occupation, t = 0.3", "occupation", "t = 0.3", "0.2895", "75"),
];

const fn asked(
    name: &'static str,
    column: &'static str,
    requirement: &'static str,
    loss_of_arx: &'static str,
    cpu_of_arx: &'static str,
) -> Asked {
    Asked { name, column, requirement, loss_of_arx, cpu_of_arx }
}

/// Losses and CPU seconds of all requirements.
pub(super) fn table(data: &Path) -> Result<String, Box<dyn Error>> {
    let (auto, arx) = (AUTO_BY_LEVELS.name, format!("quoted: {}", ARX_AT_ITS_BEST.name));
    let mut rows = [
        vec![format!("{auto}, LM")],
        vec![format!("{arx}, LM")],
        vec!["over it".to_owned()],
        vec![format!("{auto}, CPU s")],
        vec![format!("{arx}, CPU s")],
    ];
    for asked in &ASKED {
        eprintln!("adult: {}", asked.name);
        let (loss, cost) = measure(data, asked)?;
        let of_arx: f64 = asked.loss_of_arx.parse()?;
        let cells = [
            format!("{loss:.4}"),
            asked.loss_of_arx.to_owned(),
            number(loss / of_arx),
            format!("{:.3}", cost.cpu.as_secs_f64()),
            asked.cpu_of_arx.to_owned(),
        ];
        rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }
    let [salary_l, salary_t, occupation_l, occupation_t] = ASKED.map(|asked| asked.name);
    let mut grid = Grid::new([&*format!("k = {K}"), salary_l, salary_t, occupation_l, occupation_t]);
    for row in rows {
        grid.push(<[String; ASKED.len() + 1]>::try_from(row).expect("a name and a cell for each"));
    }
    Ok(grid.render())
}

fn measure(data: &Path, asked: &Asked) -> Result<(f64, Cost), Box<dyn Error>> {
    let quasi: Vec<&str> = QUASI.into_iter().filter(|&column| column != asked.column).collect();
    let mut text = columns_text(data, &quasi, AUTO_BY_LEVELS, K)?;
    text += &format!("{} = {{ role = \"sensitive\", {} }}\n", asked.column, asked.requirement);
    if asked.column != SENSITIVE {
        text += &format!("{SENSITIVE} = \"sensitive\"\n");
    }
    let spec = Spec::parse(&text)?;
    let original = load(data, &spec, &spec.tables[0], &Silent)?;
    let requirements = spec.requirements(&spec.tables[0]);
    let mut runs = Vec::new();
    for _ in 0..N_RUNS {
        runs.push(timed(|| anonymize(&original.table, &spec, &requirements, &Silent)));
    }
    let cost = Cost::median(&runs.iter().map(|&(_, cost)| cost).collect::<Vec<_>>());
    Ok((runs.swap_remove(0).0?.loss.lm, cost))
}
