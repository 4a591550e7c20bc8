//! The command `kohort-serve`.

fn main() -> std::process::ExitCode {
    kohort_server::command::run()
}
