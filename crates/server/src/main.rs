//! The command `kohort-serve`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

// Faster than the system's where statements are short and threads are many.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    kohort_server::command::run()
}
