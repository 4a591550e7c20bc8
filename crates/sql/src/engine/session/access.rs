//! Users and grants: statements about them, and what they allow a session.
//!
//! # Guarantee
//! A login reads only views that are granted to it, under a purpose and recipient that are. Views of the same persons can
//! be intersected, so a login that reads or has read some gets another only where all of them together keep everybody among
//! as many persons as they ask for in each ([`fewer_together`]). That is looked at when a view is granted, and again for
//! every version that is read: a REFRESH or a CREATE OR REPLACE may have moved classes. A view that is materialized moves
//! with every change of its table, so that nothing can be said of it beside another: a login that reads one reads no other.
//! The same holds of a view that was dropped, but that whoever grants another can say FORCE. What is revoked is refused at
//! once, also where it can't be written, since somebody holds up the data folder.
//! # Deviations
//! A login with exactly one purpose and recipient need not state them: nothing is guessed, since it can use no other.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::SqlError;
use crate::access::{AccessError, Accounts, GrantedPair, Login};
use crate::engine::change::transactions;
use crate::engine::session::{Outcome, rows};
use crate::engine::{Session, Shared};
use crate::parser::{Access, AccessStatement, Force, Granted, Password, Purposes};
use crate::policy::{PolicyError, UsedView};
use crate::role::Role;
use crate::view::{AView, Version, ViewError, fewer_together};

impl Session {
    /// Ends once its login is no more: its user was dropped, or has another password.
    pub fn until_gone(&self) -> impl Future<Output = ()> + Send + use<> {
        let (shared, login) = (Arc::clone(&self.shared), self.login.clone());
        async move {
            match (login, shared.accounts.get()) {
                (Some(login), Some(accounts)) => accounts.until_gone(&login).await,
                _ => std::future::pending().await,
            }
        }
    }
}

pub(in crate::engine) async fn run_access(session: &Session, statement: AccessStatement) -> Result<Outcome, SqlError> {
    let accounts = session.shared.accounts.get().ok_or(SqlError::NoAccounts)?;
    if !matches!(statement, AccessStatement::ShowUsers | AccessStatement::ShowGrants) {
        transactions::outside_of_transactions(session)?;
    }
    let done = match statement {
        AccessStatement::CreateUser { name, role, password } => {
            let said = format!("created {} {name}", role.word());
            let ahead = session.ahead();
            change_accounts(session, move |accounts| {
                accounts.create_user(&name, role, secret(&password), &|| ahead.record())
            })
            .await?;
            said
        }
        AccessStatement::SetPassword { name, password } => {
            let said = format!("changed the password of {name}");
            let (asked_by, ahead) = (session.login.clone(), session.ahead());
            with_accounts(session, move |accounts| {
                accounts.set_password(&name, secret(&password), asked_by.as_ref(), &|| ahead.record_or_owe())
            })
            .await?;
            write_accounts(session).await?;
            said
        }
        AccessStatement::DropUser { name, if_exists } => {
            let ahead = session.ahead();
            match accounts.drop_user(&name, if_exists, &|| ahead.record_or_owe())? {
                true => {
                    write_accounts(session).await?;
                    format!("dropped user {name}")
                }
                false => format!("there is no user {name}"),
            }
        }
        AccessStatement::Grant { what, user, force } => {
            grant(session, accounts, &what, &user, if force { Force::Yes } else { Force::No }).await?;
            format!("granted {} to {user}", described(&what))
        }
        AccessStatement::Revoke { what, user } => {
            let ahead = session.ahead();
            match &what {
                Granted::View(view) => accounts.revoke_view(&user, view, &|| ahead.record_or_owe())?,
                Granted::Pair(pair) => accounts.revoke_pair(&user, pair, &|| ahead.record_or_owe())?,
            }
            write_accounts(session).await?;
            format!("revoked {} from {user}", described(&what))
        }
        AccessStatement::ShowUsers => {
            let users = accounts.users();
            let names = users.iter().map(|(name, _)| name.clone()).collect();
            return texts([("user", names), ("role", users.iter().map(|(_, role)| role.word().into()).collect())]);
        }
        AccessStatement::ShowGrants => return show_grants(session, accounts),
    };
    Ok(Outcome::Done(done))
}

/// Takes a view away from everybody who reads it.
pub(in crate::engine) async fn revoke_from_all(session: &Session, view: &str) -> Result<(), SqlError> {
    if session.shared.accounts.get().is_none() {
        return Ok(());
    }
    let (view, ahead) = (view.to_owned(), session.ahead());
    change_accounts(session, move |accounts| accounts.forget_view(&view, &|| ahead.record())).await
}

/// Writes what was taken away and counts already, once nobody else changes the data folder. Whoever holds that up keeps
/// nothing that was revoked.
async fn write_accounts(session: &Session) -> Result<(), SqlError> {
    let written = change_accounts(session, Accounts::write).await;
    written.map_err(|error| AccessError::Unwritten { why: error.to_string() }.into())
}

/// Changes who may do what, once nobody else changes the data folder.
async fn change_accounts<T: Send + 'static>(
    session: &Session,
    change: impl FnOnce(&Accounts) -> Result<T, AccessError> + Send + 'static,
) -> Result<T, SqlError> {
    let _turn = transactions::turn(session).await?;
    with_accounts(session, change).await
}

/// Works with the accounts on a thread that may wait: to hash a password and to write take a while.
async fn with_accounts<T: Send + 'static>(
    session: &Session,
    change: impl FnOnce(&Accounts) -> Result<T, AccessError> + Send + 'static,
) -> Result<T, SqlError> {
    let shared = Arc::clone(&session.shared);
    let changed = tokio::task::spawn_blocking(move || shared.accounts.get().map(change)).await;
    match changed {
        Ok(Some(Err(AccessError::Log(unwritten)))) => Err(SqlError::Log(unwritten)),
        Ok(Some(changed)) => Ok(changed?),
        _ => Err(SqlError::NoAccounts),
    }
}

async fn grant(
    session: &Session,
    accounts: &Accounts,
    what: &Granted,
    user: &str,
    force: Force,
) -> Result<(), SqlError> {
    let role = accounts.user(user).ok_or_else(|| AccessError::UnknownUser { name: user.to_owned() })?.role;
    if role == Role::Owner {
        return Err(AccessError::IsOwner { name: user.to_owned() }.into());
    }
    // One grant after the other: two at once would not see each other.
    let _granting = session.shared.granting.lock().await;
    match what {
        Granted::View(name) => {
            let view = session.shared.view(name).ok_or_else(|| SqlError::UnknownView { name: name.clone() })?;
            if is_apart(&view) && accounts.pairs_ever(user).len() > 1 {
                return Err(AccessError::SeveralPairs { view: name.clone() }.into());
            }
            if let (Some(dropped), Force::No) = (accounts.dropped_view(user), force) {
                let (view, user) = (name.clone(), user.to_owned());
                return Err(AccessError::Dropped { view, dropped, user }.into());
            }
            session.shared.audit(&view, &accounts.views_ever(user)).await?;
            let (user, name, ahead) = (user.to_owned(), name.clone(), session.ahead());
            change_accounts(session, move |accounts| accounts.grant_view(&user, &name, &|| ahead.record())).await
        }
        Granted::Pair(pair) => {
            let is_second = accounts.pairs_ever(user).iter().any(|known| !known.is_same(pair));
            let views = accounts.views_ever(user);
            let apart = views.iter().filter_map(|name| session.shared.view(name)).find(|view| is_apart(view));
            if let (true, Some(view)) = (is_second, apart) {
                return Err(AccessError::SeveralPairs { view: view.definition.name.clone() }.into());
            }
            let (user, pair, ahead) = (user.to_owned(), pair.clone(), session.ahead());
            change_accounts(session, move |accounts| accounts.grant_pair(&user, &pair, &|| ahead.record())).await
        }
    }
}

fn show_grants(session: &Session, accounts: &Accounts) -> Result<Outcome, SqlError> {
    let (mut users, mut granted) = (Vec::new(), Vec::new());
    for (user, _) in accounts.users() {
        if session.role == Role::Analyst && session.login.as_deref() != Some(user.as_str()) {
            continue;
        }
        let views = accounts.views(&user).into_iter().map(Granted::View);
        for what in views.chain(accounts.pairs(&user).into_iter().map(Granted::Pair)) {
            users.push(user.clone());
            granted.push(described(&what));
        }
    }
    texts([("user", users), ("granted", granted)])
}

/// Purpose and recipient of a statement as far as they are granted: a claim counts for nothing.
///
/// # Errors
/// Where they are stated and not granted.
pub(in crate::engine) fn granted(session: &Session, access: &Access) -> Result<Access, AccessError> {
    let (Role::Analyst, Some(login), Some(accounts)) = (session.role, &session.login, session.shared.accounts.get())
    else {
        return Ok(access.clone());
    };
    let stated = session.stated(access);
    let pairs = accounts.pairs(login);
    let fitting: Vec<&GrantedPair> =
        pairs.iter().filter(|pair| pair.fits(stated.purpose.as_deref(), stated.recipient.as_deref())).collect();
    match fitting.as_slice() {
        [pair] => Ok(Access { purpose: Some(pair.purpose.clone()), recipient: Some(pair.recipient.clone()) }),
        [] if stated != Access::default() => {
            Err(AccessError::PairNotGranted { granted: pairs.iter().map(ToString::to_string).collect() })
        }
        _ => Ok(stated),
    }
}

/// An error as an analyst may hear it: of purposes and recipients that people chose for, those that are theirs.
pub(in crate::engine) fn told(session: &Session, mut error: SqlError) -> SqlError {
    let (Role::Analyst, Some(login), Some(accounts)) = (session.role, &session.login, session.shared.accounts.get())
    else {
        return error;
    };
    let SqlError::View(ViewError::Policy(problem)) = &mut error else { return error };
    let pairs = accounts.pairs(login);
    let is_own = |name: &str, own: fn(&GrantedPair) -> &String| {
        pairs.iter().any(|pair| own(pair).to_lowercase() == name.to_lowercase())
    };
    match problem {
        PolicyError::NoPurpose { known } | PolicyError::UnknownPurpose { known, .. } => {
            known.retain(|name| is_own(name, |pair| &pair.purpose));
        }
        PolicyError::NoRecipient { known } | PolicyError::UnknownRecipient { known, .. } => {
            known.retain(|name| is_own(name, |pair| &pair.recipient));
        }
        _ => return error,
    }
    if pairs.is_empty() { AccessError::PairNotGranted { granted: Vec::new() }.into() } else { error }
}

/// Whether a login may still do anything.
pub(in crate::engine) fn check_login(session: &Session) -> Result<(), AccessError> {
    match (&session.login, session.shared.accounts.get()) {
        (Some(login), Some(accounts)) if accounts.role(login) != Some(session.role) => Err(AccessError::LoginGone),
        _ => Ok(()),
    }
}

/// Whether a login may read these views, beside all others it reads or has read.
pub(in crate::engine) async fn check_readable(session: &Session, used: &[UsedView]) -> Result<(), SqlError> {
    let (Role::Analyst, Some(login), Some(accounts)) = (session.role, &session.login, session.shared.accounts.get())
    else {
        return Ok(());
    };
    for UsedView { name, .. } in used {
        if !accounts.may_read(login, name) {
            return Err(AccessError::ViewNotGranted { view: name.clone() }.into());
        }
        let Some(view) = session.shared.view(name) else { continue };
        session.shared.audit(&view, &accounts.views_ever(login)).await?;
        // Grants are checked when they are made, but a view may have been replaced since by one with partitions.
        if is_apart(&view) && accounts.pairs_ever(login).len() > 1 {
            return Err(AccessError::SeveralPairs { view: name.clone() }.into());
        }
    }
    Ok(())
}

/// Rows that end once what they are read by is revoked.
pub(in crate::engine) fn while_granted(
    session: &Session,
    stream: SendableRecordBatchStream,
    views: &[UsedView],
    access: Access,
) -> SendableRecordBatchStream {
    let schema = stream.schema();
    let state = Some((stream, Box::pin(until_revoked(session, views, access))));
    let watched = futures::stream::unfold(state, |state| async {
        let (mut stream, mut revoked) = state?;
        tokio::select! {
            biased;
            problem = &mut revoked => {
                Some((Err(DataFusionError::External(Box::new(SqlError::Access(problem)))), None))
            }
            batch = stream.next() => Some((batch?, Some((stream, revoked)))),
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, watched))
}

/// Ends once views may not be read any more for what they were asked for.
pub(in crate::engine) fn until_revoked(
    session: &Session,
    views: &[UsedView],
    access: Access,
) -> impl Future<Output = AccessError> + Send + use<> {
    let (shared, role, login) = (Arc::clone(&session.shared), session.role, session.login.clone());
    let names: Vec<String> = views.iter().map(|view| view.name.clone()).collect();
    async move {
        let (Role::Analyst, Some(login), Some(accounts)) = (role, login, shared.accounts.get()) else {
            return std::future::pending().await;
        };
        let problem = |accounts: &Accounts| {
            let revoked = names.iter().find(|name| !accounts.may_read(&login, name));
            match revoked {
                _ if accounts.role(&login).is_none() => Some(AccessError::LoginGone),
                Some(view) => Some(AccessError::ViewNotGranted { view: view.clone() }),
                None if !names.is_empty() && !holds(accounts, &login, &access) => {
                    Some(AccessError::PairNotGranted { granted: Vec::new() })
                }
                None => None,
            }
        };
        accounts.once(problem).await
    }
}

impl Shared {
    /// Refuses a view that tells more together with others, those named.
    async fn audit(&self, view: &Arc<AView>, others: &BTreeSet<String>) -> Result<(), SqlError> {
        let name = &view.definition.name;
        let mut names = vec![name];
        names.extend(others.iter().filter(|other| *other != name));
        if names.len() == 1 {
            return Ok(());
        }
        let mut versions: Vec<Arc<Version>> = Vec::with_capacity(names.len());
        for &held in &names {
            // Where it is the view itself that can't be looked at, that is so beside any other.
            let other = if held == name { names[1] } else { held };
            let unaudited = || AccessError::Unaudited { view: name.clone(), other: other.clone() };
            // One that is not there is not dropped, else nobody would hold it: it could not be made again.
            let known = if held == name { Some(Arc::clone(view)) } else { self.view(held) };
            versions.push(known.and_then(|known| known.version()).ok_or_else(unaudited)?);
        }
        let mut numbers: Vec<u64> = versions.iter().map(|version| version.number).collect();
        numbers.sort_unstable();
        let known = self.audits().get(&numbers).copied();
        let fewer = match known {
            Some(fewer) => fewer,
            None => {
                let look = move || fewer_together(&versions.iter().map(Arc::as_ref).collect::<Vec<_>>());
                // What could not be looked at is refused.
                let fewer = tokio::task::spawn_blocking(look).await.unwrap_or(Some(0));
                self.audits().insert(numbers, fewer);
                fewer
            }
        };
        match fewer {
            None => Ok(()),
            Some(n_persons) => {
                Err(AccessError::Together { views: names.into_iter().cloned().collect(), n_persons }.into())
            }
        }
    }
}

fn holds(accounts: &Accounts, login: &Login, access: &Access) -> bool {
    *access == Access::default()
        || accounts.pairs(login).iter().any(|pair| pair.fits(access.purpose.as_deref(), access.recipient.as_deref()))
}

fn is_apart(view: &AView) -> bool {
    view.definition.clauses.purposes == Purposes::Apart
}

fn described(what: &Granted) -> String {
    match what {
        Granted::View(view) => format!("SELECT ON {view}"),
        Granted::Pair(pair) => pair.to_string(),
    }
}

fn secret(password: &Password) -> &str {
    &password.0
}

fn texts<const N: usize>(columns: [(&str, Vec<String>); N]) -> Result<Outcome, SqlError> {
    let columns: Vec<(&str, ArrayRef, bool)> = columns
        .into_iter()
        .map(|(name, texts)| (name, Arc::new(texts.into_iter().map(Some).collect::<StringArray>()) as ArrayRef, true))
        .collect();
    rows(RecordBatch::try_from_iter_with_nullable(columns).map_err(DataFusionError::from)?)
}
