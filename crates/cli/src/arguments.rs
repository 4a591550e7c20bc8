//! The arguments of the command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    anonymize, apply, audit, check, completions, estimate, explain, explore, external, hierarchy, init, man, report,
    schema, verify,
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
    Apply(apply::ApplyClasses),
    Check(check::Check),
    Audit(audit::Audit),
    Verify(verify::Verify),
    Report(report::ReportRelease),
    Estimate(estimate::EstimateRows),
    Explore(explore::Explore),
    #[command(subcommand)]
    Hierarchy(hierarchy::Hierarchy),
    Init(init::Init),
    Schema(schema::Schema),
    Explain(explain::Explain),
    Completions(completions::Completions),
    Man(man::Man),
    /// Ask anonymization views in SQL (runs kohort-sql)
    #[command(disable_help_flag = true)]
    Sql(external::External),
    /// Serve anonymization views to PostgreSQL clients (runs kohort-serve)
    #[command(disable_help_flag = true)]
    Serve(external::External),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The words of a line as a shell reads them, up to the redirection of its output.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for letter in line.chars() {
            match (letter, quote) {
                ('>', None) => break,
                (' ', None) => words.push(String::new()),
                ('"', None) => quote = Some(letter),
                (_, Some(open)) if letter == open => quote = None,
                _ => words.last_mut().expect("there is one from the beginning").push(letter),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// The examples in the help of a command, one per line, without the explanation after them.
    fn examples(command: &clap::Command) -> Vec<Vec<String>> {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
        lines.map(|line| words(line.split("   ").next().expect("a line has a beginning"))).collect()
    }

    #[test]
    fn examples_in_help_can_be_run_as_they_stand() {
        let command = Arguments::command();
        let is_ours = |command: &&clap::Command| !external::SUBCOMMANDS.contains(&command.get_name());
        let commands = command.get_subcommands().filter(is_ours);
        for command in commands.flat_map(|command| std::iter::once(command).chain(command.get_subcommands())) {
            let examples = examples(command);
            assert!(!examples.is_empty(), "'{}' has no example", command.get_name());
            for example in examples {
                assert!(example.iter().take(3).any(|word| word == command.get_name()), "{example:?}");
                if let Err(error) = Arguments::try_parse_from(&example) {
                    panic!("{example:?}: {error}");
                }
            }
        }
    }
}
