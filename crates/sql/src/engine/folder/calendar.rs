//! [`Calendar`]: the day on which retention is measured.
//!
//! The calendar shows the clock's day, but never goes back: if the clock is set back, rows that have expired must not be shown
//! again. The latest day is written to the data folder with the next change, so this also holds after the folder is opened
//! again. If the clock was ahead, rows that expired too early stay hidden until that day really comes.

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

/// The latest day, and the latest day in the data folder, counted from 1970-01-01.
pub(crate) struct Calendar {
    clock: Clock,
    latest: AtomicI32,
    kept: AtomicI32,
}

impl Calendar {
    pub(crate) fn new(clock: Clock) -> Calendar {
        Calendar { clock, latest: AtomicI32::new(i32::MIN), kept: AtomicI32::new(i32::MIN) }
    }

    /// The day on which retention is measured.
    pub(crate) fn today(&self) -> NaiveDate {
        let now = (self.clock)().date_naive();
        let latest = self.latest.fetch_max(now.to_epoch_days(), Ordering::Relaxed);
        NaiveDate::from_epoch_days(latest).map_or(now, |latest| latest.max(now))
    }

    /// Reads the latest day from the data folder.
    pub(crate) fn restore(&self, kept: &Snapshot) -> Result<(), SqlError> {
        let Some(record) = kept.record(CALENDAR, LATEST)? else { return Ok(()) };
        let latest: NaiveDate = record.parse().map_err(|_| SqlError::Damaged { what: "the latest day".to_owned() })?;
        self.latest.fetch_max(latest.to_epoch_days(), Ordering::Relaxed);
        self.kept.store(latest.to_epoch_days(), Ordering::Relaxed);
        Ok(())
    }

    fn is_kept(&self) -> bool {
        self.today().to_epoch_days() <= self.kept.load(Ordering::Relaxed)
    }

    /// Writes the latest day with a change; `None` if the data folder has it already.
    pub(crate) fn keep(&self, change: &Change) -> Result<Option<NaiveDate>, SqlError> {
        if self.is_kept() {
            return Ok(None);
        }
        let today = self.today();
        change.put_record(CALENDAR, LATEST, &today.to_string())?;
        Ok(Some(today))
    }

    /// Notes that a day was committed to the data folder.
    pub(crate) fn was_kept(&self, day: NaiveDate) {
        self.kept.fetch_max(day.to_epoch_days(), Ordering::Relaxed);
    }
}

/// Writes a new day to the data folder before a statement uses it. If somebody else is writing, their change or the next
/// statement writes the day. A disk that is full keeps nobody from reading.
pub(crate) async fn note_day(session: &Session) {
    let Some(store) = session.shared.store.as_ref().filter(|_| !session.shared.calendar.is_kept()) else { return };
    let Ok(turn) = Arc::clone(&session.shared.turn).try_lock_owned() else { return };
    let Ok(change) = store.write() else { return };
    let _ = folder::commit(session, Transaction::new(change, turn)).await;
}
