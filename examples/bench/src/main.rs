//! Measures the crates beside their peers and prints a table. See README.md.

mod callgrind;
mod decode;
mod encode;
mod net;
mod pending;
mod process;
mod report;
mod text;
mod work;
mod ws;

use report::Report;

const USAGE: &str = "\
bench table [--quick] [--goals 1,4]   measures everything and prints the table
bench list                              the names of what is counted in instructions
bench one WORK WAY ROUNDS               does one of them, for a profiler; WAY is ours or a peer's name
bench pending WAY IN_FLIGHT             nanoseconds and bytes per pending call";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["table", ref rest @ ..] => table(rest),
        ["list"] => {
            for work in work::all() {
                let peers: Vec<_> = work.peers.iter().map(|peer| peer.name).collect();
                println!("{} (ours, {})", work.name, peers.join(", "));
            }
        }
        ["one", work, way, rounds] => {
            let works = work::all();
            let found = works.iter().find(|one| one.name == work);
            let run = found.and_then(|work| work.way(way)).expect("no such work");
            run(rounds.parse().expect("a number of rounds"));
        }
        ["pending", way, in_flight] => {
            let (time, bytes) = pending::figures(way, in_flight.parse().expect("a number"));
            println!("{time} {bytes}");
        }
        ["net", ref rest @ ..] => net::run(rest),
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2);
        }
    }
}

fn table(options: &[&str]) {
    let quick = options.contains(&"--quick");
    let goals: Option<Vec<&str>> = options
        .iter()
        .position(|option| *option == "--goals")
        .and_then(|at| options.get(at + 1))
        .map(|goals| goals.split(',').collect());
    let wanted = |goal: &str| goals.as_ref().is_none_or(|goals| goals.contains(&goal));
    encode::assert_same();
    let mut report = Report::default();
    for work in work::all() {
        if wanted(work.goal) {
            eprintln!("{}", work.name);
            report.counted(&work);
        }
    }
    if wanted("9") {
        pending::table(&mut report, quick);
    }
    if wanted("5") || wanted("6") {
        net::calls(&mut report, quick);
    }
    if wanted("7") {
        net::streams(&mut report, quick);
    }
    if wanted("8") {
        net::idle(&mut report, quick);
    }
    report.print();
}
