//! Random histories of users, grants, connections and cursors, compared with a small model of who may read what.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::client::{Connected, connect};
use crate::fixture::{OWNER, Served, serve};

/// Two views of different persons, so that every user may read both.
const VIEWS: &str = "
CREATE TABLE left_people (name TEXT, zip TEXT) AS VALUES ('a', '10'), ('b', '10'), ('c', '20'), ('d', '20');
CREATE TABLE right_people (name TEXT, zip TEXT) AS VALUES ('e', '10'), ('f', '10'), ('g', '20'), ('h', '20');
CREATE DGH zip FROM MASK RIGHT;
CREATE ANONYMIZATION_VIEW v0 ON SELECT name, zip FROM left_people WITH ANONYMIZATION_ID name
  ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 2;
CREATE ANONYMIZATION_VIEW v1 ON SELECT name, zip FROM right_people WITH ANONYMIZATION_ID name
  ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 2;
";

#[derive(Clone, Copy, Debug)]
enum Step {
    Create(usize),
    Drop(usize),
    NewPassword(usize),
    Grant(usize, usize),
    Revoke(usize, usize),
    Connect(usize),
    Read(usize, usize),
    Declare(usize, usize),
    Fetch(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (user, view, connection) = (0..2usize, 0..2usize, 0..4usize);
    let step = prop_oneof![
        3 => user.clone().prop_map(Step::Create),
        1 => user.clone().prop_map(Step::Drop),
        1 => user.clone().prop_map(Step::NewPassword),
        5 => (user.clone(), view.clone()).prop_map(|(user, view)| Step::Grant(user, view)),
        2 => (user.clone(), view.clone()).prop_map(|(user, view)| Step::Revoke(user, view)),
        4 => user.prop_map(Step::Connect),
        8 => (connection.clone(), view.clone()).prop_map(|(connection, view)| Step::Read(connection, view)),
        3 => (connection.clone(), view).prop_map(|(connection, view)| Step::Declare(connection, view)),
        4 => connection.prop_map(Step::Fetch),
    ];
    proptest::collection::vec(step, 30..50)
}

/// The users, and the views that they may read.
#[derive(Default)]
struct Model {
    users: BTreeMap<usize, User>,
    n_incarnations: u64,
    /// The number of revocations. Each one invalidates every open cursor.
    n_revocations: u64,
}

struct User {
    incarnation: u64,
    views: BTreeSet<usize>,
}

impl Model {
    fn next_incarnation(&mut self) -> u64 {
        self.n_incarnations += 1;
        self.n_incarnations
    }

    fn may_read(&self, connection: &Connection, view: usize) -> bool {
        self.is_there(connection) && self.users[&connection.user].views.contains(&view)
    }

    fn is_there(&self, connection: &Connection) -> bool {
        self.users.get(&connection.user).is_some_and(|user| user.incarnation == connection.incarnation)
    }
}

struct Connection {
    connected: Connected,
    user: usize,
    incarnation: u64,
    /// The view of its cursor, and the number of revocations when it was declared.
    cursor: Option<u64>,
}

/// Runs a step in the model and on the server, and returns whether each of them accepts it.
async fn take(
    step: Step,
    model: &mut Model,
    served: &Served,
    owner: &mut Connected,
    connections: &mut Vec<Connection>,
) -> (bool, bool) {
    match step {
        Step::Create(user) => {
            let expected = !model.users.contains_key(&user);
            if expected {
                let incarnation = model.next_incarnation();
                model.users.insert(user, User { incarnation, views: BTreeSet::new() });
            }
            (expected, owner.rows(&format!("CREATE USER u{user} PASSWORD 'correct horse'")).await.is_ok())
        }
        Step::Drop(user) => {
            let expected = model.users.remove(&user).is_some();
            model.n_revocations += u64::from(expected);
            (expected, owner.rows(&format!("DROP USER u{user}")).await.is_ok())
        }
        Step::NewPassword(user) => {
            let incarnation = model.next_incarnation();
            let known = model.users.get_mut(&user).map(|user| user.incarnation = incarnation);
            let set = owner.rows(&format!("ALTER USER u{user} PASSWORD 'correct horse'")).await;
            (known.is_some(), set.is_ok())
        }
        Step::Grant(user, view) => {
            let expected = model.users.get_mut(&user).map(|user| user.views.insert(view)).is_some();
            (expected, owner.rows(&format!("GRANT SELECT ON v{view} TO u{user}")).await.is_ok())
        }
        Step::Revoke(user, view) => {
            let expected = model.users.get_mut(&user).is_some_and(|user| user.views.remove(&view));
            model.n_revocations += u64::from(expected);
            (expected, owner.rows(&format!("REVOKE SELECT ON v{view} FROM u{user}")).await.is_ok())
        }
        Step::Connect(user) => {
            // The number of failed logins is limited, so no unknown user logs in.
            if let Some(known) = model.users.get(&user) {
                let connected = connect(served, &format!("u{user}")).await;
                let connection = Connection { connected, user, incarnation: known.incarnation, cursor: None };
                connections.insert(0, connection);
                connections.truncate(4);
            }
            (true, true)
        }
        Step::Read(place, view) => {
            let Some(connection) = connections.get_mut(place) else { return (true, true) };
            let read = connection.connected.rows(&format!("SELECT zip FROM v{view}")).await;
            (model.may_read(connection, view), read.is_ok_and(|rows| rows.len() == 4))
        }
        Step::Declare(place, view) => {
            let Some(connection) = connections.get_mut(place) else { return (true, true) };
            let _ = connection.connected.rows("CLOSE c").await;
            let expected = model.may_read(connection, view);
            connection.cursor = expected.then_some(model.n_revocations);
            let declare = format!("DECLARE c CURSOR FOR SELECT zip FROM v{view}");
            (expected, connection.connected.rows(&declare).await.is_ok())
        }
        Step::Fetch(place) => {
            let Some(connection) = connections.get_mut(place) else { return (true, true) };
            let expected = model.is_there(connection) && connection.cursor == Some(model.n_revocations);
            (expected, connection.connected.rows("FETCH 1 FROM c").await.is_ok())
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_reads_what_is_granted_to_them_now_and_nothing_else() {
    let mut runner = TestRunner::new(Config::default());
    for _ in 0..12 {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        let served = serve(VIEWS).await;
        let mut owner = connect(&served, OWNER).await;
        let (mut model, mut connections) = (Model::default(), Vec::new());
        for (number, step) in steps.iter().enumerate() {
            let (expected, done) = take(*step, &mut model, &served, &mut owner, &mut connections).await;
            assert_eq!(done, expected, "step {number} of {steps:?}");
        }
    }
}
