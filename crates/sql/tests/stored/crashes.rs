//! What engines do until they crash, and what must be found after the crash.
//!
//! A history is a list of acts, each of which an engine acknowledges. After a crash the folder must hold what all acknowledged
//! acts lead to, with or without the act that was under way: the tables cell by cell, the DGHs, and the views. Each view must
//! account for everybody in its table with their cells, and show what it keeps. Nobody may be in a class that is smaller, or has
//! fewer diseases, than the view or the person asks for.

mod acts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kohort_sql::view::ViewError;
use kohort_sql::{Engine, Session, SqlError};
use kohort_store::TableKind;

use crate::folder::{analyst, sorted, try_open};
use crate::histories::Asked;
use crate::histories::kept::{Kept, Place};
use crate::histories::steps::{EVERYBODY, Model};
use crate::session::{owner, try_rows};
use acts::asked_of;
pub(crate) use acts::{Act, History, World, short_history};

/// The day of the clock of [`try_open`], counted from the first of January.
const TODAY: u32 = 1;

/// An engine that takes acts.
pub(crate) struct Running {
    pub(crate) engine: Engine,
    session: Session,
    folder: PathBuf,
}

impl Running {
    pub(crate) async fn open(folder: &Path) -> Result<Running, SqlError> {
        let engine = try_open(folder).await?;
        Ok(Running { session: owner(&engine), engine, folder: folder.to_owned() })
    }

    /// Does an act. Its files are written beside the data folder.
    pub(crate) async fn take(mut self, act: &Act) -> Result<Running, SqlError> {
        match act {
            Act::Reopen => {
                let Running { engine, session, folder } = self;
                drop((session, engine));
                return Running::open(&folder).await;
            }
            // A view that can't be reached changes nothing. That is right, if it really can't be reached.
            Act::Refresh(view) => match try_rows(&mut self.session, &act.sql(Path::new(""))).await {
                Ok(_) => {}
                Err(SqlError::View(ViewError::Unreachable(reason))) => {
                    assert!(!self.can_be_one_class(view).await, "{act:?} was refused without need: {reason}");
                }
                Err(error) => return Err(error),
            },
            _ => {
                let file = self.folder.with_extension("csv");
                if let Some(text) = act.file() {
                    std::fs::write(&file, text).unwrap();
                }
                try_rows(&mut self.session, &act.sql(&file)).await?;
            }
        }
        Ok(self)
    }

    /// Whether one class of all persons satisfies what a view asks for. If it does not, no partition does, because what holds
    /// for all classes holds for their union.
    async fn can_be_one_class(&mut self, view: &str) -> bool {
        let asked = asked_of(view);
        let patients = sorted(&mut self.session, "SELECT name, disease FROM patient").await;
        let choices = sorted(&mut self.session, "SELECT name, k FROM choice").await;
        let choices: BTreeMap<&str, usize> =
            choices.iter().map(|choice| (choice[0].as_str(), choice[1].parse().unwrap())).collect();
        let own_k = |name: &str| match asked.has_choices {
            true => choices.get(name).or_else(|| choices.get(EVERYBODY)).copied(),
            false => Some(asked.k),
        };
        // Nobody in these histories asks for less than two. A person without a choice is not in the view.
        let members = patients.iter().filter_map(|patient| Some((own_k(&patient[0])?, patient[1].as_str())));
        let members: Vec<(usize, &str)> = members.collect();
        let needed = members.iter().map(|(k, _)| *k).max().unwrap_or(0).max(asked.k);
        let diseases: BTreeSet<&str> = members.iter().map(|(_, disease)| *disease).collect();
        members.len() >= needed && diseases.len() >= asked.l
    }
}

/// What an engine holds, as statements show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Rows of the tables, sorted.
    pub(crate) tables: BTreeMap<String, Vec<Vec<String>>>,
    /// The number of values of each DGH, as SHOW tells it.
    pub(crate) dghs: BTreeMap<String, String>,
    pub(crate) views: BTreeSet<String>,
}

/// The rows that readers see in the views, sorted.
pub(crate) type Shown = BTreeMap<String, Vec<Vec<String>>>;

/// Reads everything.
pub(crate) async fn find(engine: &Engine) -> (Found, Shown) {
    let mut session = owner(engine);
    let mut found = Found::default();
    let mut shown = Shown::new();
    let state = engine.store().unwrap().read().unwrap();
    let of_views: BTreeSet<String> = state
        .tables()
        .unwrap()
        .into_iter()
        .filter(|table| table.kind == TableKind::Hidden)
        .map(|table| table.name.split('\u{1f}').next().unwrap().to_owned())
        .collect();
    for table in state.tables().unwrap().into_iter().filter(|table| table.kind == TableKind::Base) {
        let rows = sorted(&mut session, &format!("SELECT * FROM {}", table.name)).await;
        found.tables.insert(table.name, rows);
    }
    drop(state);
    for row in sorted(&mut session, "SHOW DGHS").await {
        found.dghs.insert(row[0].clone(), row[2].clone());
    }
    for row in sorted(&mut session, "SHOW ANONYMIZATION_VIEWS").await {
        let rows = sorted(&mut analyst(engine), &format!("SELECT * FROM {}", row[0])).await;
        shown.insert(row[0].clone(), rows);
        found.views.insert(row[0].clone());
    }
    let named: BTreeSet<String> = found.views.iter().map(|view| format!("view {view}")).collect();
    assert_eq!(of_views, named, "hidden tables are those of the views that are there");
    (found, shown)
}

/// Compares what an engine holds with the model after the acknowledged acts, and after one more. Returns which of both it is.
pub(crate) async fn check(engine: &Engine, worlds: &[World], place: &str) -> (usize, Shown) {
    engine.store().unwrap().check().unwrap();
    let (found, shown) = find(engine).await;
    let which = worlds.iter().position(|world| world.expected() == found);
    let Some(which) = which else {
        let expected: Vec<Found> = worlds.iter().map(World::expected).collect();
        panic!("{place}: found {found:#?}, which is none of {expected:#?}");
    };
    for (view, asked) in &worlds[which].views {
        check_view(engine, view, *asked, &worlds[which].model, &shown[*view]).unwrap_or_else(|fault| {
            panic!("{place}: view {view}: {fault}");
        });
    }
    (which, shown)
}

fn check_view(engine: &Engine, view: &str, asked: Asked, model: &Model, shown: &[Vec<String>]) -> Result<(), String> {
    let kept = Kept::read(engine, view, asked);
    kept.accounts_for(model, asked)?;
    if kept.shown(TODAY) != shown {
        return Err(format!("it keeps {:?} and shows {shown:?}", kept.shown(TODAY)));
    }
    // Name, age, zip, disease. Nobody in these histories asks for less than two, or hides the age.
    let mut diseases: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
    shown.iter().for_each(|row| diseases.entry(&row[1..3]).or_default().push(&row[3]));
    for (labels, diseases) in &diseases {
        let n_different = diseases.iter().collect::<BTreeSet<_>>().len();
        if diseases.len() < asked.k || n_different < asked.l {
            return Err(format!("{labels:?} is shown with {diseases:?}"));
        }
    }
    let mut classes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let crowd = || kept.rows.iter().filter(|row| row.place == Place::Crowd);
    crowd().for_each(|row| classes.entry(&row.class).or_default().push(row.disease()));
    for row in crowd() {
        let (n_shown, class) = (diseases[kept.labels(row)].len(), &classes[row.class.as_str()]);
        let least = asked.k.max(row.k as usize);
        if n_shown < least || class.len() < least || class.iter().collect::<BTreeSet<_>>().len() < asked.l {
            return Err(format!("{row:?} is one of {n_shown} who look so, in a class with {class:?}"));
        }
    }
    Ok(())
}
