//! What may stand on the command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    anonymize, audit, check, completions, estimate, explain, external, hierarchy, init, schema, verify,
};

/// Releases tables about people so that nobody can be told apart from k-1 others, and proves it.
#[derive(Parser)]
#[command(name = "kohort", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Anonymize(Box<anonymize::Anonymize>),
    Check(check::Check),
    Audit(audit::Audit),
    Verify(verify::Verify),
    Estimate(estimate::EstimateRows),
    #[command(subcommand)]
    Hierarchy(hierarchy::Hierarchy),
    Init(init::Init),
    Schema(schema::Schema),
    Explain(explain::Explain),
    Completions(completions::Completions),
    /// Ask anonymization views in SQL (runs kohort-sql)
    #[command(disable_help_flag = true)]
    Sql(external::External),
    /// Serve anonymization views to PostgreSQL clients (runs kohort-serve)
    #[command(disable_help_flag = true)]
    Serve(external::External),
    /// Anonymize on several machines (runs kohort-cluster)
    #[command(disable_help_flag = true)]
    Cluster(external::External),
}
