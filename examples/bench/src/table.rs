//! `bench table`: measures, prints, and writes the file that is kept.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::report::Report;
use crate::{costs, encode, frames, machine, net, pending, time, transcript, work};

const SOURCES: &str = env!("CARGO_MANIFEST_DIR");
/// The sections whose work is done by the compiler's optimiser above all.
const CODEC: [&str; 4] = ["1", "2", "3", "4"];

pub(crate) fn table(options: &[&str]) {
    let has = |option: &str| options.contains(&option);
    let wanted = Wanted::of(options);
    encode::assert_same();
    frames::assert_same();
    // Before anything runs: it says how busy the machine was.
    let head = machine::describe();
    let mut text = measure(&wanted, has("--quick")).text();
    if has("--rows-only") {
        print!("{text}");
        return;
    }
    text = format!(
        "{head}\n\nPeers: {}, {}.\n\n## Built as users build it\n\n{}\n{text}",
        machine::crates(),
        net::versions(),
        machine::built_for(),
    );
    let codec: Vec<&str> = CODEC
        .into_iter()
        .filter(|section| wanted.section(section))
        .collect();
    if wanted.only.is_none() && !has("--this-build") && !codec.is_empty() {
        text += &match tuned(&codec) {
            Ok(rows) => format!(
                "\n## The codec, built with optimisation across crates\n\n`--profile tuned`, RUSTFLAGS=\"{}\"\n{rows}",
                processor()
            ),
            Err(why) => format!("\nNot measured with optimisation across crates: {why}.\n"),
        };
    }
    println!("{text}");
    if has("--write") {
        let file = Path::new(SOURCES).join("RESULTS.md");
        let title =
            "# Results\n\nWritten by `bench table --write`; README.md says how to read it.\n\n";
        std::fs::write(&file, format!("{title}{text}")).unwrap();
        eprintln!("written: {}", file.display());
    }
}

/// Which rows are measured: all, or those of some sections, or those whose name holds a text.
pub(crate) struct Wanted<'a> {
    sections: Option<Vec<&'a str>>,
    only: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    fn of(options: &[&'a str]) -> Self {
        let after = |name: &str| {
            let at = options.iter().position(|option| *option == name)?;
            options.get(at + 1).copied()
        };
        Self {
            sections: after("--goals").map(|sections| sections.split(',').collect()),
            only: after("--only"),
        }
    }

    /// Whether the section is, as far as its rows are.
    fn section(&self, section: &str) -> bool {
        let sections = self.sections.as_ref();
        sections.is_none_or(|sections| sections.contains(&section))
    }

    /// Whether a section is whose rows cannot be measured one by one.
    fn whole(&self, section: &str) -> bool {
        self.only.is_none() && self.section(section)
    }

    pub(crate) fn row(&self, section: &str, name: &str) -> bool {
        self.section(section) && self.only.is_none_or(|only| name.contains(only))
    }
}

fn measure(wanted: &Wanted<'_>, quick: bool) -> Report {
    let mut report = Report::default();
    let mut works = work::all();
    works.retain(|work| wanted.row(work.goal, work.name));
    report.counted(&works);
    if wanted.whole("9") {
        pending::table(&mut report, quick);
    }
    net::calls::table(&mut report, wanted, quick);
    if wanted.whole("7") {
        net::streams::table(&mut report, quick);
    }
    if wanted.whole("8") {
        net::memory::table(&mut report, quick);
    }
    if wanted.whole("growth") {
        pending::growth(&mut report, quick);
        net::growth::table(&mut report, quick);
    }
    if wanted.section("time") {
        let mut works = work::all();
        works.retain(|work| CODEC.contains(&work.goal) && wanted.row("time", work.name));
        for work in &works {
            time::rows(&mut report, "time", work, 4);
        }
    }
    if wanted.whole("costs") {
        costs::table(&mut report, quick);
    }
    if wanted.whole("cluster") {
        cluster(&mut report, quick);
    }
    if wanted.whole("relay") {
        net::relays::table(&mut report, quick);
    }
    if wanted.whole("decode") {
        transcript::table(&mut report, quick);
    }
    if wanted.whole("workers") {
        net::workers::table(&mut report, quick);
    }
    report
}

#[cfg(feature = "nats")]
fn cluster(report: &mut Report, quick: bool) {
    net::cluster::table(report, quick);
}

#[cfg(not(feature = "nats"))]
fn cluster(report: &mut Report, _: bool) {
    report.missing("cluster", "", "", "build with `--features nats`");
}

/// Builds this program with the most that a compiler can do, and has it measure these sections.
fn tuned(sections: &[&str]) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = own.parent().and_then(Path::parent).map(PathBuf::from);
    let target = target.ok_or("it is not below a folder of cargo's")?;
    eprintln!("building with optimisation across crates");
    let status = Command::new("cargo")
        .args(["build", "--locked", "--profile", "tuned", "--manifest-path"])
        .arg(Path::new(SOURCES).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env("RUSTFLAGS", processor())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("cargo could not build it".to_owned());
    }
    let output = Command::new(target.join("tuned/bench"))
        .args(["table", "--rows-only", "--goals", &sections.join(",")])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// Processors of the last ten years, which is what sonic-rs asks for.
fn processor() -> &'static str {
    if cfg!(target_arch = "x86_64") {
        "-C target-cpu=x86-64-v3"
    } else {
        "-C target-cpu=native"
    }
}
