//! [`Calendar`]: the day on which retention is measured.
//!
//! It is the clock's, and never one before a day on which something was read: a clock that is set back would show again
//! what had expired. A data folder remembers the latest day with whatever it keeps next, so that this holds when it is
//! opened again. A clock that was ahead hides what it hid until that day has come.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use chrono::NaiveDate;
use kohort_store::{Change, Snapshot};

use crate::SqlError;
use crate::engine::change::transactions::Transaction;
use crate::engine::folder;
use crate::engine::{Clock, Session};

const CALENDAR: &str = "calendar";
const LATEST: &str = "latest day";

/// Days that do not go back, as numbers since 1970-01-01.
pub(in crate::engine) struct Calendar {
    clock: Clock,
    latest: AtomicI32,
    kept: AtomicI32,
}

impl Calendar {
    pub(in crate::engine) fn new(clock: Clock) -> Calendar {
        Calendar { clock, latest: AtomicI32::new(i32::MIN), kept: AtomicI32::new(i32::MIN) }
    }

    /// The day on which retention is measured.
    pub(in crate::engine) fn today(&self) -> NaiveDate {
        let now = (self.clock)().date_naive();
        let latest = self.latest.fetch_max(now.to_epoch_days(), Ordering::Relaxed);
        NaiveDate::from_epoch_days(latest).map_or(now, |latest| latest.max(now))
    }

    /// Takes up the latest day that a data folder knows of.
    ///
    /// # Errors
    /// Where what is kept is no day.
    pub(in crate::engine) fn restore(&self, kept: &Snapshot) -> Result<(), SqlError> {
        let Some(record) = kept.record(CALENDAR, LATEST)? else { return Ok(()) };
        let latest: NaiveDate = record.parse().map_err(|_| SqlError::Damaged { what: "the latest day".to_owned() })?;
        self.latest.fetch_max(latest.to_epoch_days(), Ordering::Relaxed);
        self.kept.store(latest.to_epoch_days(), Ordering::Relaxed);
        Ok(())
    }

    fn is_kept(&self) -> bool {
        self.today().to_epoch_days() <= self.kept.load(Ordering::Relaxed)
    }

    /// Writes the latest day beside a change, and says which it is where it has to be written.
    pub(in crate::engine) fn keep(&self, change: &Change) -> Result<Option<NaiveDate>, SqlError> {
        if self.is_kept() {
            return Ok(None);
        }
        let today = self.today();
        change.put_record(CALENDAR, LATEST, &today.to_string())?;
        Ok(Some(today))
    }

    /// Notes that a day was committed.
    pub(in crate::engine) fn was_kept(&self, day: NaiveDate) {
        self.kept.fetch_max(day.to_epoch_days(), Ordering::Relaxed);
    }
}

/// Writes a new day down before it is used. Where somebody else writes, their change does, or the next statement; a
/// disk that takes nothing keeps nobody from reading.
pub(in crate::engine) async fn note_day(session: &Session) {
    let Some(data) = session.shared.data.as_ref().filter(|_| !session.shared.calendar.is_kept()) else { return };
    let Ok(turn) = Arc::clone(&session.shared.turn).try_lock_owned() else { return };
    let Ok(change) = data.store.write() else { return };
    let _ = folder::commit(session, Transaction::new(change, turn)).await;
}
