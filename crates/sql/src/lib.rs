//! A-views: anonymization as a relational operator behind SQL.
