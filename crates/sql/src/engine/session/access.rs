//! Users and grants: the statements about them, and what they allow a session to do.
//!
//! # Guarantee
//! A login reads only views that are granted to it, under a purpose and a recipient that are granted to it.
//!
//! Views of the same persons can be intersected. So a login that reads or has read some views gets another one only if all of
//! them together still hide everybody among as many persons as each view asks for ([`fewer_together`]). This is checked when a
//! view is granted, and again for every version that is read, because a REFRESH or a CREATE OR REPLACE may have moved classes.
//! A materialized view changes with its table, so nothing can be said about it together with another view: a login that reads a
//! materialized view reads no other. The same holds after a view was dropped, unless the owner grants the next one with FORCE.
//!
//! A right that is revoked is gone at once, even while the data folder can't be written because somebody holds it up.
//! # Deviations
//! A login with exactly one purpose and recipient need not state them. Nothing is guessed, because it can use no other.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::SqlError;
use crate::access::{AccessError, Accounts, Granted, Login};
use crate::engine::change::transactions;
use crate::engine::session::{Outcome, list, texts};
use crate::engine::{Session, Shared};
use crate::parser::{AccessStatement, Purposes};
use crate::policy::{Pair, PolicyError, UsedView, is_same};
use crate::role::Role;
use crate::view::{AView, Version, ViewError, fewer_together};

impl Session {
    /// The login of an analyst, who may only do what is granted. Owners, and analysts who have not logged in, need no
    /// grants.
    pub(in crate::engine) fn restricted(&self) -> Option<(&Login, &Accounts)> {
        match (self.role, &self.login, self.shared.accounts.get()) {
            (Role::Analyst, Some(login), Some(accounts)) => Some((login, accounts)),
            _ => None,
        }
    }

    /// Waits until the login is no longer valid, because its user was dropped or has got another password.
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

pub(crate) async fn run_access(session: &Session, statement: AccessStatement) -> Result<Outcome, SqlError> {
    let accounts = session.shared.accounts.get().ok_or(SqlError::NoAccounts)?;
    if !matches!(statement, AccessStatement::ShowUsers | AccessStatement::ShowGrants) {
        transactions::outside_of_transactions(session)?;
    }
    let ahead = session.ahead();
    let done = match statement {
        AccessStatement::CreateUser { name, role, password } => {
            let said = format!("created {} {name}", role.word());
            change_accounts(session, move |accounts| {
                accounts.create_user(&name, role, &password.0, &|| ahead.record())
            })
            .await?;
            said
        }
        AccessStatement::SetPassword { name, password } => {
            let said = format!("changed the password of {name}");
            let asked_by = session.login.clone();
            with_accounts(session, move |accounts| {
                accounts.set_password(&name, &password.0, asked_by.as_ref(), &|| ahead.record_or_owe())
            })
            .await?;
            write_accounts(session).await?;
            said
        }
        AccessStatement::DropUser { name, if_exists } => {
            match accounts.drop_user(&name, if_exists, &|| ahead.record_or_owe())? {
                true => {
                    write_accounts(session).await?;
                    format!("dropped user {name}")
                }
                false => format!("there is no user {name}"),
            }
        }
        AccessStatement::Grant { what, user, force } => {
            let said = format!("granted {what} to {user}");
            grant(session, accounts, what, user, force).await?;
            said
        }
        AccessStatement::Revoke { what, user } => {
            accounts.revoke(&user, &what, &|| ahead.record_or_owe())?;
            write_accounts(session).await?;
            format!("revoked {what} from {user}")
        }
        AccessStatement::ShowUsers => {
            let (names, roles): (Vec<String>, Vec<Role>) = accounts.users().into_iter().unzip();
            return list([("user", texts(names)), ("role", texts(roles.into_iter().map(Role::word)))]);
        }
        AccessStatement::ShowGrants => return show_grants(session, accounts),
    };
    Ok(Outcome::Done(done))
}

/// Revokes a view from everybody.
pub(crate) async fn revoke_from_all(session: &Session, view: &str) -> Result<(), SqlError> {
    if session.shared.accounts.get().is_none() {
        return Ok(());
    }
    let (view, ahead) = (view.to_owned(), session.ahead());
    change_accounts(session, move |accounts| accounts.forget_view(&view, &|| ahead.record())).await
}

/// Writes what was revoked in memory, once nobody else changes the data folder. Somebody who holds up the data folder does
/// not keep a right by that.
async fn write_accounts(session: &Session) -> Result<(), SqlError> {
    let written = change_accounts(session, Accounts::write).await;
    written.map_err(|error| AccessError::Unwritten { why: error.to_string() }.into())
}

/// Changes users or grants, once nobody else changes the data folder.
async fn change_accounts<T: Send + 'static>(
    session: &Session,
    change: impl FnOnce(&Accounts) -> Result<T, AccessError> + Send + 'static,
) -> Result<T, SqlError> {
    let _turn = transactions::turn(session).await?;
    with_accounts(session, change).await
}

/// Changes users or grants on a thread that may block, because hashing a password and writing take a while.
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
    what: Granted,
    user: String,
    is_forced: bool,
) -> Result<(), SqlError> {
    let role = accounts.user(&user).ok_or_else(|| AccessError::UnknownUser { name: user.clone() })?.role;
    if role == Role::Owner {
        return Err(AccessError::IsOwner { name: user }.into());
    }
    // Two grants at once would not see each other.
    let _granting = session.shared.granting.lock().await;
    match &what {
        Granted::View(name) => {
            let view = session.shared.known_view(name)?;
            if is_apart(&view) && accounts.pairs_ever(&user).len() > 1 {
                return Err(AccessError::SeveralPairs { view: name.clone() }.into());
            }
            if let Some(dropped) = accounts.dropped_view(&user).filter(|_| !is_forced) {
                return Err(AccessError::Dropped { view: name.clone(), dropped, user }.into());
            }
            session.shared.audit(&view, &accounts.views_ever(&user)).await?;
        }
        Granted::Pair(pair) => {
            let is_second = accounts.pairs_ever(&user).iter().any(|known| !known.fits(pair));
            let views = accounts.views_ever(&user);
            let apart = views.iter().filter_map(|name| session.shared.view(name)).find(|view| is_apart(view));
            if let (true, Some(view)) = (is_second, apart) {
                return Err(AccessError::SeveralPairs { view: view.definition.name.clone() }.into());
            }
        }
    }
    let ahead = session.ahead();
    change_accounts(session, move |accounts| accounts.grant(&user, &what, &|| ahead.record())).await
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
            granted.push(what.to_string());
        }
    }
    list([("user", texts(users)), ("granted", texts(granted))])
}

/// The purpose and recipient of a statement that its login may use. Stating them is not enough: they must be granted.
///
/// # Errors
/// The statement states a purpose or recipient that is not granted.
pub(crate) fn granted(session: &Session, pair: &Pair) -> Result<Pair, AccessError> {
    let Some((login, accounts)) = session.restricted() else { return Ok(pair.clone()) };
    let stated = session.stated(pair);
    let pairs = accounts.pairs(login);
    let fitting: Vec<&Pair> = pairs.iter().filter(|pair| pair.fits(&stated)).collect();
    match fitting.as_slice() {
        [pair] => Ok((*pair).clone()),
        [] if stated != Pair::default() => {
            Err(AccessError::PairNotGranted { granted: pairs.iter().map(ToString::to_string).collect() })
        }
        _ => Ok(stated),
    }
}

/// An error as an analyst may see it. Of the purposes and recipients that persons chose for, it lists only those that are
/// granted to the analyst.
pub(crate) fn told(session: &Session, mut error: SqlError) -> SqlError {
    let Some((login, accounts)) = session.restricted() else { return error };
    let SqlError::View(ViewError::Policy(problem)) = &mut error else { return error };
    let pairs = accounts.pairs(login);
    let is_own = |name: &str, own: fn(&Pair) -> &Option<String>| {
        pairs.iter().filter_map(|pair| own(pair).as_deref()).any(|own| is_same(own, name))
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

/// Refuses a login that is no longer valid.
pub(crate) fn check_login(session: &Session) -> Result<(), AccessError> {
    match (&session.login, session.shared.accounts.get()) {
        (Some(login), Some(accounts)) if accounts.role(login) != Some(session.role) => Err(AccessError::LoginGone),
        _ => Ok(()),
    }
}

/// Refuses views that a login may not read, alone or together with the others that it reads or has read.
pub(crate) async fn check_readable(session: &Session, used: &[UsedView]) -> Result<(), SqlError> {
    let Some((login, accounts)) = session.restricted() else { return Ok(()) };
    for UsedView { name, .. } in used {
        if !accounts.may_read(login, name) {
            return Err(AccessError::ViewNotGranted { view: name.clone() }.into());
        }
        let Some(view) = session.shared.view(name) else { continue };
        session.shared.audit(&view, &accounts.views_ever(login)).await?;
        // The grant was checked, but the view may have been replaced since by one with a partition per purpose.
        if is_apart(&view) && accounts.pairs_ever(login).len() > 1 {
            return Err(AccessError::SeveralPairs { view: name.clone() }.into());
        }
    }
    Ok(())
}

/// Rows that end with an error once the right to read them is revoked.
pub(crate) fn while_granted(
    session: &Session,
    stream: SendableRecordBatchStream,
    views: &[UsedView],
    pair: Pair,
) -> SendableRecordBatchStream {
    let schema = stream.schema();
    let state = Some((stream, Box::pin(until_revoked(session, views, pair))));
    let watched = futures::stream::unfold(state, |state| async {
        let (mut stream, mut revoked) = state?;
        tokio::select! {
            biased;
            problem = &mut revoked => {
                Some((Err(SqlError::Access(problem).into()), None))
            }
            batch = stream.next() => Some((batch?, Some((stream, revoked)))),
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, watched))
}

/// Waits until the login may no longer read these views for this purpose and recipient.
pub(crate) fn until_revoked(
    session: &Session,
    views: &[UsedView],
    pair: Pair,
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
                None if !names.is_empty() && !holds(accounts, &login, &pair) => {
                    Some(AccessError::PairNotGranted { granted: Vec::new() })
                }
                None => None,
            }
        };
        accounts.once(problem).await
    }
}

impl Shared {
    /// Refuses a view that tells too much together with these others.
    async fn audit(&self, view: &Arc<AView>, others: &BTreeSet<String>) -> Result<(), SqlError> {
        let name = &view.definition.name;
        let mut names = vec![name];
        names.extend(others.iter().filter(|other| *other != name));
        if names.len() == 1 {
            return Ok(());
        }
        let mut versions: Vec<Arc<Version>> = Vec::with_capacity(names.len());
        for &held in &names {
            // If the view itself can't be compared, it can't be compared with any other.
            let other = if held == name { names[1] } else { held };
            let unaudited = || AccessError::Unaudited { view: name.clone(), other: other.clone() };
            // A view that is missing was not dropped, because nobody would hold it then. It could not be made again.
            let known = if held == name { Some(Arc::clone(view)) } else { self.view(held) };
            versions.push(known.and_then(|known| known.version()).ok_or_else(unaudited)?);
        }
        let mut numbers: Vec<u64> = versions.iter().map(|version| version.number).collect();
        numbers.sort_unstable();
        let known = self.audits.lock().get(&numbers).copied();
        let fewer = match known {
            Some(fewer) => fewer,
            None => {
                let look = move || fewer_together(&versions.iter().map(Arc::as_ref).collect::<Vec<_>>());
                // Refuse if the comparison fails.
                let fewer = tokio::task::spawn_blocking(look).await.unwrap_or(Some(0));
                self.audits.lock().insert(numbers, fewer);
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

fn holds(accounts: &Accounts, login: &Login, pair: &Pair) -> bool {
    *pair == Pair::default() || accounts.pairs(login).iter().any(|known| known.fits(pair))
}

fn is_apart(view: &AView) -> bool {
    view.definition.clauses.purposes == Purposes::Apart
}
