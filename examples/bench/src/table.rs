//! `bench table`: measures, prints, and writes the file that is kept.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::report::Report;
use crate::{costs, encode, frames, machine, net, pending, time, work};

const SOURCES: &str = env!("CARGO_MANIFEST_DIR");
/// The sections whose work is done by the compiler's optimiser above all.
const CODEC: [&str; 4] = ["1", "2", "3", "4"];

pub(crate) fn table(options: &[&str]) {
    let has = |option: &str| options.contains(&option);
    let sections: Option<Vec<&str>> = options
        .iter()
        .position(|option| *option == "--goals")
        .and_then(|at| options.get(at + 1))
        .map(|sections| sections.split(',').collect());
    let wanted = |section: &str| {
        let sections = sections.as_ref();
        sections.is_none_or(|sections| sections.contains(&section))
    };
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
        .filter(|section| wanted(section))
        .collect();
    if !has("--this-build") && !codec.is_empty() {
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

fn measure(wanted: &impl Fn(&str) -> bool, quick: bool) -> Report {
    let mut report = Report::default();
    let mut works = work::all();
    works.retain(|work| wanted(work.goal));
    report.counted(&works);
    if wanted("9") {
        pending::table(&mut report, quick);
    }
    if wanted("5") || wanted("6") {
        net::calls::table(&mut report, wanted, quick);
    }
    if wanted("7") {
        net::streams::table(&mut report, quick);
    }
    if wanted("8") {
        net::memory::table(&mut report, quick);
    }
    if wanted("growth") {
        pending::growth(&mut report, quick);
        net::growth::table(&mut report, quick);
    }
    if wanted("time") {
        let mut works = work::all();
        works.retain(|work| CODEC.contains(&work.goal));
        for work in &works {
            time::rows(&mut report, "time", work, 4);
        }
    }
    if wanted("costs") {
        costs::table(&mut report, quick);
    }
    if wanted("workers") {
        net::workers::table(&mut report, quick);
    }
    report
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
