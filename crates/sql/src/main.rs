//! The command `kohort-sql`.

use std::process::ExitCode;

use kohort_sql::parser::STACK;
use mimalloc::MiMalloc;

// Faster than the system's where statements are short and threads are many.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Statements run on the thread that waits for them.
    let shell = std::thread::Builder::new().stack_size(STACK).spawn(kohort_sql::shell::run);
    match shell.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) => ExitCode::from(101),
        Err(error) => {
            eprintln!("error: no thread: {error}");
            ExitCode::FAILURE
        }
    }
}
