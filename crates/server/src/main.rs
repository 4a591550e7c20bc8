//! The command `kohort-serve`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

// Faster than the system's allocator for short statements and many threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    kohort_server::command::run()
}
