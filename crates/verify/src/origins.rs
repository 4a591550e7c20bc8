//! Origins: the private rows that released rows can have come from, where nothing says which row came from which.

pub(crate) mod assignment;
pub(crate) mod candidates;
