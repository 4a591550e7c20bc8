//! Handing out private rows as origins to released rows, where nothing links the two.

pub(crate) mod assignment;
pub(crate) mod candidates;
