//! `has_table_privilege` and similar functions, for the login that calls them.
//!
//! # Guarantee
//! An analyst has SELECT on the views in the analyst's catalog at that moment and on PostgreSQL's catalog, and no other
//! privilege. The result is `false` for views that are not granted and for those that do not exist, so that an analyst
//! can't tell them apart. An owner has every privilege on existing tables and views. Questions about other users, and
//! about tables named by their number, are an error.
//! # Deviations
//! In PostgreSQL a missing table is an error, and a table can be named by its number.

use std::sync::{Arc, Weak};

use datafusion::arrow::array::{Array, AsArray, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::CatalogProviderList;
use datafusion::common::not_impl_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Signature, SimpleScalarUDF, TypeSignature, Volatility};
use kohort_sql::Role;
use kohort_sql::worker::Asker;

use super::{CATALOG, PG_CATALOG};

const PUBLIC: &str = "public";
const INFORMATION_SCHEMA: &str = "information_schema";

/// The login whose privileges are asked for.
#[derive(Clone)]
pub(super) struct Holder {
    user: String,
    role: Role,
    seen: Seen,
}

/// The tables and views that a login can see.
#[derive(Clone)]
enum Seen {
    /// The current ones of a session.
    Session(Weak<dyn CatalogProviderList>),
    /// A fixed list.
    Listed(Arc<[String]>),
}

impl Holder {
    /// The login of a session.
    pub(super) fn of_session(user: &str, role: Role, catalogs: &Arc<dyn CatalogProviderList>) -> Holder {
        Holder { user: user.to_owned(), role, seen: Seen::Session(Arc::downgrade(catalogs)) }
    }

    /// The analyst of a statement, in the worker process.
    pub(super) fn of_asker(asker: &Asker) -> Holder {
        let seen = Seen::Listed(asker.views.clone().into());
        Holder { user: asker.user.clone(), role: Role::Analyst, seen }
    }

    fn sees(&self, table: &str) -> bool {
        match &self.seen {
            Seen::Listed(names) => names.iter().any(|name| name == table),
            Seen::Session(catalogs) => {
                let schema = catalogs.upgrade().and_then(|catalogs| catalogs.catalog(CATALOG)?.schema(PUBLIC));
                schema.is_some_and(|schema| schema.table_exist(table))
            }
        }
    }

    /// Whether the login has a privilege on a table.
    fn has_table(&self, table: &str, privilege: Privilege) -> bool {
        let Some(path) = parts(table) else { return false };
        let (schema, name) = match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [name] if name.starts_with("pg_") && !self.sees(name) => (PG_CATALOG, name.to_owned()),
            [name] => (PUBLIC, name.to_owned()),
            [schema, name] | [CATALOG, schema, name] => (schema, name.to_owned()),
            _ => return false,
        };
        match (schema, self.role) {
            (PUBLIC, Role::Owner) => self.sees(&name),
            (PUBLIC, Role::Analyst) => privilege == Privilege::Read && self.sees(&name),
            (PG_CATALOG | INFORMATION_SCHEMA, _) => privilege == Privilege::Read,
            _ => false,
        }
    }

    fn has_schema(&self, schema: &str, privilege: Privilege) -> bool {
        let path = parts(schema).unwrap_or_default();
        let [schema] = path.as_slice() else { return false };
        match (schema.as_str(), privilege) {
            (PUBLIC | PG_CATALOG | INFORMATION_SCHEMA, Privilege::Read) => true,
            (PUBLIC, Privilege::Change) => self.role == Role::Owner,
            _ => false,
        }
    }

    fn has_database(&self, database: &str, privilege: Privilege) -> bool {
        parts(database).is_some_and(|path| path == [CATALOG]) && privilege == Privilege::Read
    }
}

/// A privilege.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Privilege {
    /// SELECT, USAGE, CONNECT.
    Read,
    /// All other privileges, and the right to grant.
    Change,
}

/// The kind of object that a function is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Table,
    Schema,
    Database,
}

/// The functions for a login.
pub(super) fn functions(holder: &Holder) -> Vec<ScalarUDF> {
    [
        ("has_table_privilege", About::Table),
        ("has_any_column_privilege", About::Table),
        ("has_schema_privilege", About::Schema),
        ("has_database_privilege", About::Database),
    ]
    .into_iter()
    .map(|(name, about)| function(name, about, holder.clone()))
    .collect()
}

fn function(name: &'static str, about: About, holder: Holder) -> ScalarUDF {
    let of = |first: &DataType| TypeSignature::Exact(vec![first.clone(), DataType::Utf8]);
    let by_user = |named: &DataType| TypeSignature::Exact(vec![DataType::Utf8, named.clone(), DataType::Utf8]);
    let (text, number, large) = (DataType::Utf8, DataType::Int32, DataType::Int64);
    let named = [&text, &number, &large];
    let signatures = named.iter().map(|named| of(named)).chain(named.iter().map(|named| by_user(named))).collect();
    let signature = Signature::new(TypeSignature::OneOf(signatures), Volatility::Stable);
    let says = move |arguments: &[ColumnarValue]| says(name, about, &holder, arguments);
    ScalarUDF::from(SimpleScalarUDF::new_with_signature(name, signature, DataType::Boolean, Arc::new(says)))
}

fn says(name: &str, about: About, holder: &Holder, arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(arguments)?;
    let (users, named, privileges) = match arrays.as_slice() {
        [named, privileges] => (None, named, privileges),
        [users, named, privileges] => (Some(users.as_string::<i32>()), named, privileges),
        _ => return not_impl_err!("{name} takes two or three arguments"),
    };
    if named.data_type() != &DataType::Utf8 {
        return not_impl_err!("{name} supports only names, not numbers; SHOW GRANTS lists the grants");
    }
    let (named, privileges) = (named.as_string::<i32>(), privileges.as_string::<i32>());
    let mut held = Vec::with_capacity(named.len());
    for row in 0..named.len() {
        if named.is_null(row) || privileges.is_null(row) || users.is_some_and(|users| users.is_null(row)) {
            held.push(None);
            continue;
        }
        if users.is_some_and(|users| users.value(row) != holder.user) {
            return not_impl_err!("{name} supports only your own privileges; SHOW GRANTS lists the grants");
        }
        let mut any = false;
        for privilege in privileges.value(row).split(',') {
            let privilege = read_privilege(about, privilege)?;
            any |= match about {
                About::Table => holder.has_table(named.value(row), privilege),
                About::Schema => holder.has_schema(named.value(row), privilege),
                About::Database => holder.has_database(named.value(row), privilege),
            };
        }
        held.push(Some(any));
    }
    Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(held))))
}

fn read_privilege(about: About, text: &str) -> Result<Privilege> {
    let word = text.trim().to_uppercase();
    let (word, may_grant) = match word.strip_suffix(" WITH GRANT OPTION") {
        Some(word) => (word.trim_end().to_owned(), true),
        None => (word, false),
    };
    let (read, change): (&str, &[&str]) = match about {
        About::Table => {
            ("SELECT", &["INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN", "RULE"])
        }
        About::Schema => ("USAGE", &["CREATE"]),
        About::Database => ("CONNECT", &["CREATE", "TEMPORARY", "TEMP"]),
    };
    if word == read && !may_grant {
        Ok(Privilege::Read)
    } else if word == read || change.contains(&word.as_str()) {
        Ok(Privilege::Change)
    } else {
        Err(DataFusionError::Plan("there is no such privilege".to_owned()))
    }
}

/// The parts of an SQL name; `None` if the text is not a name.
fn parts(name: &str) -> Option<Vec<String>> {
    let (mut parts, mut rest) = (Vec::new(), name.trim());
    loop {
        let part = match rest.strip_prefix('"') {
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                let (part, after) = rest.split_at(end);
                rest = after;
                part.to_lowercase()
            }
            Some(quoted) => {
                let (mut part, mut characters) = (String::new(), quoted.char_indices().peekable());
                loop {
                    match characters.next()? {
                        (_, '"') if characters.next_if(|&(_, next)| next == '"').is_some() => part.push('"'),
                        (end, '"') => {
                            rest = &quoted[end + 1..];
                            break part;
                        }
                        (_, other) => part.push(other),
                    }
                }
            }
        };
        parts.push(part);
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Some(parts),
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_sql_writes_them() {
        let read = |name: &str| parts(name).map(|parts| parts.join("|"));
        assert_eq!(read("Seen").as_deref(), Some("seen"));
        assert_eq!(read("\"Odd \"\"one\"").as_deref(), Some("Odd \"one"));
        assert_eq!(read("kohort.public.\"a.b\"").as_deref(), Some("kohort|public|a.b"));
        assert_eq!(read("\"open"), None);
        assert_eq!(read("\"a\"b"), None);
    }

    #[test]
    fn an_analyst_reads_what_is_granted_and_an_owner_all_that_is_there() {
        let asker = Asker { user: "ann".to_owned(), views: vec!["seen".to_owned()] };
        let ann = Holder::of_asker(&asker);
        let owner = Holder { role: Role::Owner, ..ann.clone() };
        for name in ["seen", "SEEN", "public.seen", "kohort.public.seen", "\"seen\""] {
            assert!(ann.has_table(name, Privilege::Read), "{name}");
            assert!(!ann.has_table(name, Privilege::Change), "{name}");
            assert!(owner.has_table(name, Privilege::Change), "{name}");
        }
        for name in ["people", "public.people", "other.seen", "\"Seen\"", "a.b.c.d", ""] {
            assert!(!ann.has_table(name, Privilege::Read), "{name}");
            assert!(!owner.has_table(name, Privilege::Read), "{name}");
        }
        assert!(ann.has_table("pg_class", Privilege::Read) && ann.has_table("pg_catalog.pg_class", Privilege::Read));
        assert!(ann.has_schema("public", Privilege::Read) && !ann.has_schema("public", Privilege::Change));
        assert!(owner.has_schema("public", Privilege::Change) && !owner.has_schema("other", Privilege::Read));
        assert!(ann.has_database("kohort", Privilege::Read) && !ann.has_database("other", Privilege::Read));
    }
}
