//! Measures the crates beside their peers and prints a table. See README.md.

mod callgrind;
mod costs;
mod decode;
mod encode;
mod folder;
mod frames;
mod gate;
mod goals;
mod machine;
mod net;
mod pending;
mod process;
#[cfg(feature = "gateway")]
#[path = "../../../fuzz/testing/src/recordings.rs"]
mod recordings;
mod report;
mod table;
mod text;
mod time;
mod transcript;
mod work;
mod ws;

const USAGE: &str = "\
bench table [OPTIONS]                   measures everything and prints the table
    --goals 1,4,growth                  some sections only: 1 to 9, calls, cluster, costs, decode, growth, relay,
                                        time, workers, ws
    --only TEXT                         rows only whose name holds the text, of calls and of what is counted
    --quick                             fewer calls and connections
    --this-build                        not the codec once more, built for AVX2 with LTO
    --write                             writes RESULTS.md beside the sources too
bench gate                              counts what has a goal; fails if one is lost
bench list                              the names of what is counted in instructions
bench one WORK WAY ROUNDS               does one of them, for a profiler; WAY is ours or a peer's name
bench recording BYTES                   a recording of this size, as goal decode has it; with `--features gateway`
bench decode FILE                       decodes it once, for a profiler; with `--features gateway`
bench pending WAY IN_FLIGHT             nanoseconds and bytes per pending call";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["table", ref rest @ ..] => table::table(rest),
        ["gate"] => {
            encode::assert_same();
            frames::assert_same();
            if !gate::gate() {
                std::process::exit(1);
            }
        }
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
        #[cfg(feature = "gateway")]
        ["recording", bytes] => {
            print!(
                "{}",
                transcript::recording(bytes.parse().expect("a number of bytes"))
            );
        }
        #[cfg(feature = "gateway")]
        ["decode", file] => {
            transcript::explain(&std::fs::read_to_string(file).expect("a recording"))
        }
        ["net", ref rest @ ..] => net::run(rest),
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2);
        }
    }
}
