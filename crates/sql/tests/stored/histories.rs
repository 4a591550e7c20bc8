//! Random histories of a table, its choices, the clock and a materialized view. After every step the table is as the model has
//! it, the view shows what it keeps and nobody hides, everybody is accounted for, and a reader who kept all answers identifies
//! nobody. Values that have expired stay hidden, even if the clock goes back.
//!
//! The checks are written by hand and use nothing of the verifier.

mod attacker;
pub(crate) mod kept;
pub(crate) mod steps;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kohort_sql::{Engine, Session, SqlError};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::folder::{analyst, open_by, sorted};
use crate::session::{owner, rows, try_rows};
use attacker::Attacker;
use kept::Kept;
use steps::{Change, Choice, Model, Step, changes, first_choices, steps, undecided_steps};

/// The definition of a view, and what every set must satisfy that a reader can single out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) clauses: &'static str,
    pub(crate) has_choices: bool,
    pub(crate) has_ward: bool,
    /// The k of everybody who asks for less.
    pub(crate) least_k: u32,
    pub(crate) k: usize,
    pub(crate) l: usize,
    pub(crate) t: f64,
    pub(crate) withdraws: bool,
}

const PLAIN: Asked =
    Asked { clauses: "K 2", has_choices: false, has_ward: false, least_k: 2, k: 2, l: 1, t: 1.0, withdraws: false };

pub(crate) const DEFINITIONS: [Asked; 9] = [
    PLAIN,
    Asked { clauses: "K 3", has_ward: true, least_k: 3, k: 3, ..PLAIN },
    Asked { clauses: "name REFERENCES choice (k, level)", has_choices: true, least_k: 0, k: 2, ..PLAIN },
    Asked { clauses: "K 2 L_DIVERSITY 2", l: 2, ..PLAIN },
    Asked { clauses: "K 2 T_CLOSENESS 0.5", t: 0.5, ..PLAIN },
    Asked { clauses: "K 2 DEPARTURES WITHDRAW", withdraws: true, ..PLAIN },
    Asked {
        clauses: "name REFERENCES choice (k, level) L_DIVERSITY 2 DEPARTURES WITHDRAW",
        has_choices: true,
        least_k: 0,
        l: 2,
        withdraws: true,
        ..PLAIN
    },
    Asked { clauses: "name REFERENCES choice (k, level) K 2", has_choices: true, has_ward: true, ..PLAIN },
    Asked { clauses: "K 3 LEFTOVERS SUPPRESS", least_k: 3, k: 3, ..PLAIN },
];

impl Asked {
    pub(crate) fn view(&self, name: &str, changes: &str) -> String {
        let (column, other) = if self.has_ward { (", ward", "ANONYMIZATION_OTHER (ward)") } else { ("", "") };
        format!(
            "CREATE MATERIALIZED ANONYMIZATION_VIEW {name} ON SELECT name, age, zip, disease{column} FROM patient
             WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age DGH_NAME age, zip DGH_NAME zip)
             ANONYMIZATION_SENSITIVE_ATTR (disease DGH_NAME disease) {other} {} {changes}",
            self.clauses
        )
    }
}

const DGHS: &str = "
    CREATE DGH age FROM STEPS (10, 50);
    CREATE DGH zip;
    INSERT INTO DGH zip VALUES ('0851', '085*'), ('0852', '085*'), ('9911', '991*'), ('085*', '*'), ('991*', '*');
    CREATE DGH disease;
    INSERT INTO DGH disease VALUES ('flu', 'virus'), ('cold', 'virus'), ('virus', 'any'), ('gout', 'any');";

struct Run {
    asked: Asked,
    engine: Engine,
    session: Session,
    model: Model,
    attacker: Attacker,
    /// The day that the clock shows.
    day: Arc<AtomicU32>,
    /// The latest day that the clock has shown.
    today: u32,
}

impl Run {
    async fn begin(folder: &Path, asked: Asked, changes: &str) -> Run {
        Run::begin_with(folder, asked, changes, Model::at_first()).await
    }

    async fn begin_with(folder: &Path, asked: Asked, changes: &str, model: Model) -> Run {
        let day = Arc::new(AtomicU32::new(0));
        let engine = open_by(folder, &day).await;
        let mut session = owner(&engine);
        rows(&mut session, &format!("{DGHS} {}", model.tables())).await;
        rows(&mut session, &asked.view("v", changes)).await;
        let attacker = Attacker::new(asked);
        Run { asked, engine, session, model, attacker, day, today: 0 }
    }

    async fn take(mut self, folder: &Path, step: &Step) -> Result<Run, TestCaseError> {
        let mut is_refresh = false;
        match step {
            Step::Alone(change) => {
                let works = self.model.apply(change);
                self.run(change, works).await?;
            }
            Step::Together(changes, end) => {
                let before = self.model.clone();
                rows(&mut self.session, "BEGIN").await;
                for change in changes {
                    let works = self.model.apply(change);
                    self.run(change, works).await?;
                    let found = sorted(&mut self.session, "SELECT * FROM patient").await;
                    prop_assert_eq!(found, self.model.patients());
                }
                rows(&mut self.session, end.statement()).await;
                if end.forgets() {
                    self.model = before;
                }
            }
            Step::Reopen => {
                let Run { session, engine, .. } = self;
                drop((session, engine));
                let engine = open_by(folder, &self.day).await;
                self = Run { session: owner(&engine), engine, ..self };
            }
            Step::Day(day) => {
                self.day.store(*day, Ordering::Relaxed);
                self.today = self.today.max(*day);
            }
            Step::Refresh => match try_rows(&mut self.session, "REFRESH ANONYMIZATION_VIEW v").await {
                Ok(_) => is_refresh = true,
                // Nothing may have changed then. The attacker would see it.
                Err(SqlError::View(_)) => {}
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            },
            Step::RefreshPart => match try_rows(&mut self.session, "REFRESH ANONYMIZATION_VIEW v PARTIAL").await {
                Ok(_) => is_refresh = true,
                Err(SqlError::View(_)) => {}
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            },
            Step::ForceRefresh => match try_rows(&mut self.session, "REFRESH ANONYMIZATION_VIEW v FORCE").await {
                Ok(_) => self.attacker = Attacker::new(self.asked),
                Err(SqlError::View(_)) => {}
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            },
        }
        self.check(is_refresh).await?;
        Ok(self)
    }

    async fn run(&mut self, change: &Change, works: bool) -> Result<(), TestCaseError> {
        let sql = change.statement();
        match try_rows(&mut self.session, &sql).await {
            Ok(_) => prop_assert!(works, "{sql} should have failed"),
            Err(error) => prop_assert!(!works, "{sql}: {error}"),
        }
        Ok(())
    }

    async fn check(&mut self, is_refresh: bool) -> Result<(), TestCaseError> {
        prop_assert_eq!(sorted(&mut self.session, "SELECT * FROM patient").await, self.model.patients());
        let kept = Kept::read(&self.engine, "v", self.asked);
        let shown = sorted(&mut analyst(&self.engine), "SELECT * FROM v").await;
        prop_assert_eq!(shown, kept.shown(self.today));
        if let Err(fault) = kept.accounts_for(&self.model, self.asked) {
            return Err(TestCaseError::fail(fault));
        }
        self.attacker.sees(&kept, is_refresh);
        Ok(())
    }

    /// Checks that a join, which finds labels in memory and reads only the classes it needs, gives the same rows as a join with
    /// all rows of the view, and finds exactly the labels that these rows show.
    async fn joins_what_it_shows(&self) -> Result<(), TestCaseError> {
        let guesses = "(VALUES (21), (24), (36), (52), (57), (90)) AS guess (age)";
        let mut analyst = analyst(&self.engine);
        let joined = |view: &str| {
            format!("SELECT v.age, v.zip, v.disease, guess.age FROM {view} JOIN {guesses} ON v.age = guess.age")
        };
        // The join is not moved below the limit, so this one reads all rows of the view.
        let everything = "(SELECT * FROM v LIMIT 1000) AS v";
        let found = sorted(&mut analyst, &joined("v")).await;
        prop_assert_eq!(&found, &sorted(&mut analyst, &joined(everything)).await);
        let pairs =
            |view: &str| format!("SELECT DISTINCT v.age, guess.age FROM {view} JOIN {guesses} ON v.age = guess.age");
        let n_pairs = sorted(&mut analyst, &pairs(everything)).await.len().to_string();
        let plan = rows(&mut analyst, &format!("EXPLAIN ANALYZE {}", joined("v"))).await.concat().concat();
        // The first operator joins rows. The second one finds the labels that rows must have.
        let n_of_operator = |operator: &str| {
            let metrics = operator.split("output_rows=").nth(1)?;
            metrics.split([',', ']']).next().map(str::to_owned)
        };
        let counts: Vec<Option<String>> = plan.split("PairsExec").skip(1).map(n_of_operator).collect();
        prop_assert_eq!(counts, [Some(found.len().to_string()), Some(n_pairs)], "{}", plan);
        Ok(())
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn nobody_is_made_out(asked: Asked, model: Model, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::begin_with(folder.path(), asked, "", model).await;
    run.check(false).await?;
    for step in &steps {
        run = run.take(folder.path(), step).await?;
        if let Err(fault) = run.attacker.fails() {
            return Err(TestCaseError::fail(fault));
        }
    }
    run.joins_what_it_shows().await
}

fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_reader_who_kept_every_answer_makes_out_nobody(
        definition in 0..DEFINITIONS.len(),
        steps in steps(),
    ) {
        block_on(nobody_is_made_out(DEFINITIONS[definition], Model::at_first(), steps))?;
    }
}

/// Views with choices, in which a person may refuse every column.
const CHOSEN: [Asked; 3] = [
    Asked { clauses: "name REFERENCES choice (k, level) K 2", has_choices: true, has_ward: true, ..PLAIN },
    Asked {
        clauses: "name REFERENCES choice (k, level) DEPARTURES WITHDRAW",
        has_choices: true,
        has_ward: true,
        least_k: 0,
        withdraws: true,
        ..PLAIN
    },
    Asked {
        clauses: "name REFERENCES choice (k, level) K 3",
        has_choices: true,
        has_ward: true,
        least_k: 3,
        k: 3,
        ..PLAIN
    },
];

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn what_somebody_refuses_or_what_has_expired_is_hidden_and_nobody_is_made_out(
        definition in 0..CHOSEN.len(),
        choices in first_choices(),
        steps in undecided_steps(),
    ) {
        block_on(nobody_is_made_out(CHOSEN[definition], Model::with_choices(choices), steps))?;
    }
}

#[test]
fn somebody_who_was_withdrawn_is_in_no_other_crowd_until_a_refresh_is_forced() {
    let withdrawing = Asked { clauses: "K 2 L_DIVERSITY 2 DEPARTURES WITHDRAW", l: 2, withdraws: true, ..PLAIN };
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::begin(folder.path(), withdrawing, "").await;
        run.check(false).await.unwrap();
        let n_hidden = |run: &Run| {
            let kept = Kept::read(&run.engine, "v", withdrawing);
            kept.rows.iter().filter(|row| row.place == kept::Place::Hidden).count()
        };
        let steps = [Step::Alone(Change::Delete(vec![0])), Step::Alone(changes::crowd()), Step::RefreshPart];
        for step in &steps {
            run = run.take(folder.path(), step).await.unwrap();
            run.attacker.fails().unwrap();
            assert!(n_hidden(&run) > 0, "{step:?}");
        }
        run = run.take(folder.path(), &Step::ForceRefresh).await.unwrap();
        assert_eq!(n_hidden(&run), 0);
    });
}

#[test]
fn a_person_who_leaves_while_everybodys_choice_changes_is_gone() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let run = Run::begin(folder.path(), DEFINITIONS[2], "").await;
        let together = [changes::everybody(3), Change::Delete(vec![0, 1, 2])];
        run.take(folder.path(), &Step::Together(together.to_vec(), steps::End::Commit)).await.unwrap();
    });
}

#[test]
fn a_person_with_values_in_no_dgh_is_kept_with_current_cells_and_choice() {
    let nowhere = |disease| steps::Patient { age: Some(21), zip: Some("7777"), disease, ward: Some("south") };
    let changed = [
        Change::Update(6, nowhere(Some("flu"))),
        Change::Choose2(Some(6), Choice { ward_until: 0, ..Choice::open(2, 0) }),
        Change::Update(6, nowhere(Some("gout"))),
    ];
    let model = Model::with_choices(vec![Choice::open(2, 0); 9]);
    let steps = changed.map(Step::Alone).into_iter().chain([Step::Refresh, Step::Reopen]).collect();
    block_on(nobody_is_made_out(CHOSEN[0], model, steps)).unwrap();
}
