//! Users and grants in memory, and after reading them again from their records.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::*;

/// Records that two accounts share.
struct Shared(Arc<MemoryRecords>);

impl Records for Shared {
    fn list(&self, kind: &str) -> std::io::Result<Vec<Record>> {
        self.0.list(kind)
    }

    fn put(&self, kind: &str, name: &str, text: &str) -> std::io::Result<()> {
        self.0.put(kind, name, text)
    }

    fn remove(&self, kind: &str, name: &str) -> std::io::Result<()> {
        self.0.remove(kind, name)
    }
}

fn view(name: &str) -> Granted {
    Granted::View(name.to_owned())
}

fn pair(purpose: &str, recipient: &str) -> Pair {
    Pair { purpose: Some(purpose.to_owned()), recipient: Some(recipient.to_owned()) }
}

#[test]
fn accounts_are_read_again_as_they_were_and_hold_no_password() {
    let records = Arc::new(MemoryRecords::default());
    let open = || Accounts::open(Box::new(Shared(Arc::clone(&records)))).unwrap();
    let accounts = open();
    accounts.create_user("olga", Role::Owner, "correct horse", UNASKED).unwrap();
    accounts.create_user("a\"nn','x", Role::Analyst, "battery staple", UNASKED).unwrap();
    accounts.grant("a\"nn','x", &view("se[en"), UNASKED).unwrap();
    accounts.grant("a\"nn','x", &view("other"), UNASKED).unwrap();
    accounts.revoke("a\"nn','x", &view("other"), UNASKED).unwrap();
    accounts.grant("a\"nn','x", &view("go]ne"), UNASKED).unwrap();
    assert_eq!(accounts.dropped_view("a\"nn','x"), None);
    accounts.forget_view("go]ne", UNASKED).unwrap();
    accounts.grant("a\"nn','x", &Granted::Pair(pair("care", "nurse")), UNASKED).unwrap();
    assert!(!format!("{records:?}").contains("horse"));

    accounts.write().unwrap();
    let again = open();
    assert_eq!(again.users(), accounts.users());
    assert_eq!(again.views("a\"nn','x"), BTreeSet::from(["se[en".to_owned()]));
    assert_eq!(again.views_ever("a\"nn','x").len(), 2);
    assert_eq!(again.dropped_view("a\"nn','x").as_deref(), Some("go]ne"));
    assert_eq!(again.dropped_view("olga"), None);
    assert_eq!(again.pairs("a\"nn','x"), [pair("care", "nurse")]);
    assert_eq!(again.verifier("nobody").0, accounts.verifier("nobody").0);
    assert!(again.verifier("nobody").1.is_none());
    assert_eq!(again.role(&again.verifier("olga").1.unwrap()), Some(Role::Owner));
}

#[test]
fn names_and_passwords_that_are_none_are_refused() {
    let accounts = Accounts::in_memory().unwrap();
    let create = |name: &str, password: &str| accounts.create_user(name, Role::Analyst, password, UNASKED);
    assert!(matches!(create("", "long enough"), Err(AccessError::BadName { .. })));
    assert!(matches!(create("a\nb", "long enough"), Err(AccessError::BadName { .. })));
    assert!(matches!(create(&"a".repeat(64), "long enough"), Err(AccessError::BadName { .. })));
    let short = create("ann", "secret").unwrap_err();
    assert!(matches!(short, AccessError::BadPassword { .. }));
    assert!(!short.to_string().contains("secret"));
    let hashed = Verifier::of_password("long enough").unwrap().to_string();
    assert!(matches!(create("ann", &hashed), Err(AccessError::HashedPassword)));
    create("ann", "long enough").unwrap();
    assert!(matches!(create("ann", "long enough"), Err(AccessError::UserExists { .. })));
}

#[test]
fn the_last_owner_stays() {
    let accounts = Accounts::in_memory().unwrap();
    accounts.create_user("olga", Role::Owner, "correct horse", UNASKED).unwrap();
    assert!(matches!(accounts.drop_user("olga", false, UNASKED), Err(AccessError::LastOwner)));
    accounts.create_user("otto", Role::Owner, "correct horse", UNASKED).unwrap();
    assert!(accounts.drop_user("olga", false, UNASKED).unwrap());
    assert!(!accounts.drop_user("olga", true, UNASKED).unwrap());
}

#[test]
fn a_revoked_grant_is_remembered_and_gives_no_right() {
    let accounts = Accounts::in_memory().unwrap();
    accounts.create_user("ann", Role::Analyst, "correct horse", UNASKED).unwrap();
    accounts.grant("ann", &view("seen"), UNASKED).unwrap();
    accounts.grant("ann", &Granted::Pair(pair("Care", "Nurse")), UNASKED).unwrap();
    let ann = accounts.verifier("ann").1.unwrap();
    assert!(accounts.may_read(&ann, "seen"));
    let before = accounts.revocations();
    accounts.revoke("ann", &view("seen"), UNASKED).unwrap();
    accounts.revoke("ann", &Granted::Pair(pair("care", "NURSE")), UNASKED).unwrap();
    assert!(accounts.revocations() > before);
    assert!(!accounts.may_read(&ann, "seen"));
    assert!(accounts.pairs("ann").is_empty());
    assert_eq!(accounts.views_ever("ann").len(), 1);
    assert_eq!(accounts.pairs_ever("ann"), [pair("Care", "Nurse")]);
    assert!(matches!(accounts.revoke("ann", &view("seen"), UNASKED), Err(AccessError::NotGranted { .. })));
}

#[test]
fn a_user_that_was_dropped_comes_back_without_grants() {
    let accounts = Accounts::in_memory().unwrap();
    accounts.create_user("ann", Role::Analyst, "correct horse", UNASKED).unwrap();
    accounts.grant("ann", &view("seen"), UNASKED).unwrap();
    let before = accounts.verifier("ann").1.unwrap();
    accounts.drop_user("ann", false, UNASKED).unwrap();
    assert!(!accounts.may_read(&before, "seen"));
    accounts.create_user("ann", Role::Analyst, "correct horse", UNASKED).unwrap();
    assert!(!accounts.may_read(&accounts.verifier("ann").1.unwrap(), "seen"));
    assert_eq!(accounts.views_ever("ann").len(), 1);
}

#[test]
fn a_login_is_of_somebody_and_not_of_a_name_or_a_password_that_is_no_more() {
    let accounts = Accounts::in_memory().unwrap();
    accounts.create_user("ann", Role::Analyst, "correct horse", UNASKED).unwrap();
    let first = accounts.verifier("ann").1.unwrap();
    accounts.drop_user("ann", false, UNASKED).unwrap();
    accounts.create_user("ann", Role::Analyst, "correct horse", UNASKED).unwrap();
    accounts.grant("ann", &view("seen"), UNASKED).unwrap();
    assert_eq!((accounts.role(&first), accounts.may_read(&first, "seen")), (None, false));
    let (second, other) = (accounts.verifier("ann").1.unwrap(), accounts.verifier("ann").1.unwrap());
    assert!(accounts.may_read(&second, "seen"));
    accounts.set_password("ann", "battery staple", Some(&second), UNASKED).unwrap();
    assert!(accounts.may_read(&second, "seen"), "whoever changes their own password stays");
    assert_eq!(accounts.role(&other), None);
    accounts.set_password("ann", "staple battery", Some(&first), UNASKED).unwrap();
    assert_eq!((accounts.role(&first), accounts.role(&second)), (None, None));
}

/// Records that can't be written for a while.
struct Failing(Arc<MemoryRecords>, Arc<std::sync::atomic::AtomicBool>);

impl Failing {
    fn check(&self) -> std::io::Result<()> {
        let fails = self.1.load(Ordering::Relaxed);
        if fails { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Records for Failing {
    fn list(&self, kind: &str) -> std::io::Result<Vec<Record>> {
        self.0.list(kind)
    }

    fn put(&self, kind: &str, name: &str, text: &str) -> std::io::Result<()> {
        self.check().and_then(|()| self.0.put(kind, name, text))
    }

    fn remove(&self, kind: &str, name: &str) -> std::io::Result<()> {
        self.check().and_then(|()| self.0.remove(kind, name))
    }
}

#[test]
fn revocations_take_effect_before_they_are_written_and_grants_after() {
    let (kept, fails) = (Arc::<MemoryRecords>::default(), Arc::<std::sync::atomic::AtomicBool>::default());
    let open = || Accounts::open(Box::new(Failing(Arc::clone(&kept), Arc::clone(&fails)))).unwrap();
    let accounts = open();
    for user in ["ann", "bob"] {
        accounts.create_user(user, Role::Analyst, "correct horse", UNASKED).unwrap();
        accounts.grant(user, &view("seen"), UNASKED).unwrap();
    }
    let [ann, bob] = ["ann", "bob"].map(|user| accounts.verifier(user).1.unwrap());
    fails.store(true, Ordering::Relaxed);
    accounts.revoke("ann", &view("seen"), UNASKED).unwrap();
    accounts.drop_user("bob", false, UNASKED).unwrap();
    assert!(matches!(accounts.write(), Err(AccessError::Records(_))));
    assert_eq!((accounts.may_read(&ann, "seen"), accounts.role(&bob)), (false, None));
    assert!(accounts.grant("ann", &view("seen"), UNASKED).is_err());
    assert!(!accounts.may_read(&ann, "seen"));
    assert_eq!(open().views("ann").len(), 1, "nothing of it could be written");
    fails.store(false, Ordering::Relaxed);
    accounts.create_user("cem", Role::Analyst, "correct horse", UNASKED).unwrap();
    let again = open();
    assert_eq!((again.views("ann").len(), again.views_ever("ann").len()), (0, 1));
    assert_eq!(again.users().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["ann", "cem"]);
}
