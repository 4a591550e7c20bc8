//! What the tests of several crates share: random jobs, brute-force oracles, attacks, the corpus of cases, and test
//! data.
//!
//! - [`attacks`]: the catalogue of attacks, each with what the attacker knows, does and gets;
//! - [`generate`]: random tables, hierarchies, requirements and specs;
//! - [`oracle`]: what a release satisfies and loses, by definition, without code of `kohort-core` or `kohort-verify`;
//! - [`corpus`]: small named cases that every partitioner runs;
//! - [`students`] and [`patients`]: the multirelational and the query-processing paper's experiments, in any size;
//!   [`random`]: the generator of random numbers that they use;
//! - [`mutations`]: changes to a valid release, and an oracle that says which of them are harmful;
//! - [`scenario`]: one job given as texts, from file to released file;
//! - [`jobs`]: random jobs of every system, each recounted;
//! - [`data`]: the goldens, which every clone has, and the real data, which it may not.

pub mod attacks;
pub mod corpus;
pub mod data;
pub mod generate;
pub mod jobs;
pub mod mutations;
pub mod oracle;
pub mod patients;
pub mod random;
pub mod scenario;
pub mod students;
