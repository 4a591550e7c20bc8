//! The command `kohort-sql`.

use std::process::ExitCode;

use kohort_sql::parser::STACK;
use mimalloc::MiMalloc;

// Faster than the system's allocator if statements are short and there are many threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Statements run on this thread, so it needs the stack that parsing a deep statement takes.
    let shell = std::thread::Builder::new().stack_size(STACK).spawn(kohort_sql::shell::run);
    match shell.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) => ExitCode::from(101),
        Err(error) => {
            eprintln!("error: no thread could be started: {error}");
            ExitCode::FAILURE
        }
    }
}
