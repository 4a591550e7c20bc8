//! [`work_until_killed`]: a process that works, acknowledges what it finished, and is killed at some moment.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const MARK: &str = "finished ";

/// Called by the process that works: acknowledges that the work of this number is finished for good.
pub fn acknowledge(number: u64) {
    let mut output = std::io::stdout().lock();
    // If this fails, the parent is gone, and nobody waits for more.
    if writeln!(output, "{MARK}{number}").and_then(|()| output.flush()).is_err() {
        std::process::exit(1);
    }
}

/// Starts a process and kills it (`SIGKILL`) after it has acknowledged `number` and this function has then counted
/// through `turns` turns of an empty loop. Returns the last acknowledged number; `None` if there is none.
///
/// The process counts up from 0 and must not end by itself.
pub fn work_until_killed(command: &mut Command, number: u64, turns: u64) -> Option<u64> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the process can be started");
    let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
    let mut last = None;
    while last.is_none_or(|last| last < number) {
        let Some(Ok(line)) = lines.next() else {
            let status = child.wait().expect("the process was started");
            panic!("the process ended by itself ({status}) after acknowledging {last:?}");
        };
        last = last.max(acknowledged(&line));
    }
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
    child.kill().expect("the process does not end by itself");
    // Everything that the process acknowledged before it was killed counts, even if it is read only now. A line that
    // breaks off does not count.
    for line in lines.map_while(Result::ok) {
        last = last.max(acknowledged(&line));
    }
    child.wait().expect("the process was started");
    last
}

/// The number in a line. Other text may come first in the line, because test programs write to the same output.
fn acknowledged(line: &str) -> Option<u64> {
    line.rsplit_once(MARK)?.1.parse().ok()
}
