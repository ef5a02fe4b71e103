//! `switchboard wire decode`: each frame of a transcript on a line, with what is wrong with it.

use std::io::{self, BufWriter, Read, Write as _};
use std::path::PathBuf;

use super::open;
use crate::cli::{Failure, Stdout, complain, is_output_lost, wants_colour};
use crate::decode::{Count, Options, decode};
use crate::recording;
use crate::text::{counted, printable};
use crate::transcript::BadLine;

/// The most invalid lines of a transcript that are named.
const MAX_NAMED: usize = 5;

/// Explains each frame of a transcript on a line: time, direction, kind, what it says and which line
/// it answers. Below it stand unknown members, and errors with their place.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The transcript, a HAR file of a browser, or either compressed with gzip; '-' for standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    options: Options,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.file.display();
    let input: Box<dyn Read> = match args.file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(open(&args.file)?),
    };
    let input = recording::open(input);
    let input = input.map_err(|error| Failure::usage(format_args!("{name}: {error}")))?;
    let options = Options {
        colour: wants_colour(&io::stdout()),
        ..args.options
    };
    let mut named = 0;
    let bad = |error: &BadLine| {
        named += 1;
        if named <= MAX_NAMED {
            complain(printable(&error.to_string()));
        }
    };
    let mut out = BufWriter::with_capacity(256 * 1024, Stdout);
    let done = decode(&options, input, &mut out, bad).and_then(|count| out.flush().map(|()| count));
    let count = match done {
        Ok(count) => count,
        // The reader has seen enough, or the error is reported.
        Err(_) if is_output_lost() => return Ok(()),
        Err(error) => return Err(Failure::new(format_args!("{name}: {error}"))),
    };
    let Count {
        entries,
        unknown,
        faults,
        problems,
        bad,
    } = count;
    complain(format_args!(
        "{entries} entries, {}: {faults} with errors, {unknown} not wholly known",
        counted(problems, "problem")
    ));
    super::judge(&name.to_string(), bad)
}
