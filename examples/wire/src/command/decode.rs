//! `switchboard wire decode`: each frame of recordings on a line, with what is wrong with it.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};

use super::{create, is_written, open};
use crate::cli::{Failure, Stdout, complain, is_output_lost, wants_colour};
use crate::decode::{Count, Options, Printer};
use crate::har::Har;
use crate::recording::{self, each_line};
use crate::text::{counted, printable};
use crate::transcript::BadLine;

/// The most invalid lines of a transcript that are named.
const MAX_NAMED: usize = 5;

/// Explains each frame of recordings on a line: time, direction, kind, what it says and which line
/// it answers. Below it stand unknown members, and errors with their place.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The recordings: transcripts, HAR files of a browser, or either compressed with gzip; '-' for standard input,
    /// which may still go on. Default: standard input.
    files: Vec<PathBuf>,
    #[command(flatten)]
    options: Options,
    /// Write the frames without their secrets to this HAR file, too, which browsers open. It must not exist.
    #[arg(long, value_name = "FILE")]
    har: Option<PathBuf>,
}

type Out = RefCell<BufWriter<Stdout>>;

/// An input that shows what was read before it waits for more.
struct Live<'o, R> {
    input: R,
    out: &'o Out,
}

impl<R: Read> Read for Live<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.out.borrow_mut().flush()?;
        self.input.read(bytes)
    }
}

pub(super) fn run(mut args: Args) -> Result<(), Failure> {
    if args.files.is_empty() {
        let file = args.options.shown.take_file();
        args.files.push(file.unwrap_or_else(|| "-".into()));
    }
    args.options.colour = wants_colour(&io::stdout());
    let mut har = args
        .har
        .as_deref()
        .map(|file| create("--har", file))
        .transpose()?
        .zip(Some(Har::default()));
    let out = RefCell::new(BufWriter::with_capacity(256 * 1024, Stdout));
    let mut outcome = Ok(());
    for file in &args.files {
        if args.files.len() > 1 && !args.options.json {
            let name = file.display().to_string();
            let title = writeln!(out.borrow_mut(), "{}:", printable(&name));
            title.map_err(|error| wrong(file, error))?;
        }
        let opened = (file.as_os_str() != "-").then(|| open(file)).transpose()?;
        let decoded = decode(
            &args.options,
            opened,
            &out,
            har.as_mut().map(|(_, har)| har),
        );
        match decoded.and_then(|count| out.borrow_mut().flush().map(|()| count)) {
            Ok(count) => {
                summary(&count);
                outcome = outcome.and(super::judge(&file.display().to_string(), count.bad));
            }
            // The reader has seen enough, or the error is reported.
            Err(_) if is_output_lost() => return Ok(()),
            Err(error) => return Err(wrong(file, error)),
        }
    }
    if let Some((mut file, har)) = har {
        let written = file.write_all(har.text().as_bytes());
        written.map_err(|error| Failure::usage(format_args!("--har: {error}")))?;
    }
    outcome
}

fn wrong(file: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::new(format_args!("{}: {error}", file.display()))
}

fn decode(
    options: &Options,
    file: Option<File>,
    out: &Out,
    mut har: Option<&mut Har>,
) -> io::Result<Count> {
    let is_complete = file.as_ref().is_none_or(|file| !is_written(file));
    let input: Box<dyn Read> = match file {
        Some(file) => Box::new(file),
        None => Box::new(Live {
            input: io::stdin().lock(),
            out,
        }),
    };
    let mut named = 0;
    let mut bad = |error: &BadLine| {
        named += 1;
        if named <= MAX_NAMED {
            complain(printable(&error.to_string()));
        }
    };
    let mut printer = Printer::new(options);
    if let Some(har) = &mut har {
        har.begin();
    }
    each_line(recording::open(input)?, |n, line| {
        if let Some(har) = &mut har {
            har.line(line, &options.shown);
        }
        printer.line(n, line, &mut *out.borrow_mut(), &mut bad)
    })?;
    printer.end(is_complete, &mut *out.borrow_mut())
}

fn summary(count: &Count) {
    let Count {
        entries,
        unknown,
        faults,
        problems,
        ..
    } = count;
    complain(format_args!(
        "{entries} entries, {}: {faults} with errors, {unknown} not wholly known",
        counted(*problems, "problem")
    ));
}
