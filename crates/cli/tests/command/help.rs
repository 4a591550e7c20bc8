//! Help, and commands that only print.

use std::collections::BTreeSet;

use insta::assert_snapshot;

use crate::runner::Folder;

#[test]
fn every_command_has_help() {
    let folder = Folder::new();
    for command in [
        "",
        "anonymize",
        "apply",
        "check",
        "audit",
        "verify",
        "estimate",
        "explore",
        "hierarchy",
        "hierarchy check",
        "hierarchy show",
        "hierarchy make",
        "init",
        "report",
        "schema",
        "explain",
        "explore",
        "completions",
        "man",
    ] {
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        arguments.push("--help");
        let ran = folder.run(&arguments);
        assert_eq!(ran.code, 0);
        assert_eq!(ran.stderr, "");
        assert_snapshot!(format!("help {command}").trim().replace([' ', '-'], "_"), ran.stdout);
    }
}

#[test]
fn wrong_use_ends_in_exit_code_2() {
    let folder = Folder::new();
    for arguments in [
        &["frobnicate"][..],
        &["check", "data.csv"],
        &["anonymize", "data.csv", "--k", "5"],
        &["anonymize", "data.csv", "--k", "five", "-o", "out"],
        &["anonymize", "data.csv", "--leftovers", "eat", "-o", "out"],
    ] {
        let ran = folder.run_in_vain(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = Folder::new().run(&["completions", shell]);
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("max-suppressed"), "{shell}");
    }
}

#[test]
fn manual_pages_are_printed_and_written_one_per_command() {
    let folder = Folder::new();
    let printed = folder.run(&["man"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    assert!(printed.stdout.contains(".TH kohort 1"), "{printed}");
    std::fs::create_dir(folder.path("man1")).unwrap();
    assert_eq!(folder.run(&["man", "-o", "man1"]).code, 0);
    let entries = std::fs::read_dir(folder.path("man1")).unwrap();
    let names: BTreeSet<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let commands = [
        "kohort",
        "kohort-anonymize",
        "kohort-apply",
        "kohort-audit",
        "kohort-check",
        "kohort-completions",
        "kohort-estimate",
        "kohort-explain",
        "kohort-explore",
        "kohort-hierarchy",
        "kohort-hierarchy-check",
        "kohort-hierarchy-make",
        "kohort-hierarchy-show",
        "kohort-init",
        "kohort-man",
        "kohort-report",
        "kohort-schema",
        "kohort-verify",
    ];
    assert_eq!(names, BTreeSet::from(commands.map(|command| format!("{command}.1"))));
    assert_eq!(folder.read("man1/kohort.1"), printed.stdout);
    let page = folder.read("man1/kohort-anonymize.1");
    assert!(page.contains(".TH kohort-anonymize 1") && page.contains("max\\-suppressed"), "{page}");
    let ran = folder.run(&["man", "-o", "missing"]);
    assert_eq!(ran.code, 2, "{ran}");
}

#[test]
fn words_are_explained() {
    let folder = Folder::new();
    assert_snapshot!("explain", folder.run(&["explain"]));
    assert_snapshot!("explain_t-closeness", folder.run(&["explain", "t-closeness"]));
    assert_snapshot!("explain_entropy_l-diversity", folder.run(&["explain", "entropy", "l-diversity"]));
    assert_snapshot!("explain_wing", folder.run(&["explain", "wing"]));
    assert_snapshot!("explain_something_unknown", folder.run(&["explain", "privacy"]));
}

#[test]
fn programs_that_are_not_installed_are_named() {
    let folder = Folder::new();
    // The command is linked into a folder of its own, because its build folder may hold the other programs.
    let alone = folder.path(&format!("kohort{}", std::env::consts::EXE_SUFFIX));
    std::fs::hard_link(env!("CARGO_BIN_EXE_kohort"), &alone).unwrap();
    let bin = alone.parent().unwrap().canonicalize().unwrap();
    let bin = bin.display();
    for command in ["sql", "serve"] {
        let ran = folder.run_program(&alone, &[command, "--help"], b"");
        assert_eq!(ran.code, 2);
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            ran.stderr,
            format!("error: kohort-{command} is not installed\nhint: install kohort-{command} {version} into {bin}\n")
        );
    }
}

#[test]
fn programs_beside_the_command_are_run_with_its_arguments() {
    let folder = Folder::new();
    // A copy of the command under the name of the other program has the right version.
    for name in ["kohort", "kohort-sql"] {
        let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        std::fs::hard_link(env!("CARGO_BIN_EXE_kohort"), folder.path(&name)).unwrap();
    }
    let command = folder.path(&format!("kohort{}", std::env::consts::EXE_SUFFIX));
    let ran = folder.run_program(&command, &["sql", "explain", "plain"], b"");
    assert_eq!(ran.stdout, "A column that helps nobody to find a person. Released unchanged.\n");
    assert_eq!(folder.run_program(&command, &["sql", "explain", "nothing"], b"").code, 2);
    assert_eq!(folder.run_program(&command, &["serve"], b"").code, 2);
}
