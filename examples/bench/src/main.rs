//! Measures the crates beside their peers. See README.md.

mod callgrind;
mod frames;
mod gate;
mod goals;
mod net;
mod pending;
mod process;
mod text;
mod work;

const USAGE: &str = "\
bench gate                              counts what has a goal; fails if one is lost
bench table [TEXT]                      measures time and memory of whole processes: all rows, or those whose name
                                        holds the text
bench list                              the names of what is counted in instructions
bench one WORK WAY ROUNDS               does one of them, for a profiler; WAY is ours or a peer's name
bench pending                           bytes per pending call, with a million in flight";

fn main() {
    let arguments = std::env::args().skip(1);
    let words: Vec<&'static str> = arguments.map(|word| &*word.leak()).collect();
    match words[..] {
        ["gate"] => {
            if !gate::gate() {
                std::process::exit(1);
            }
        }
        ["table"] => net::table::table(""),
        ["table", only] => net::table::table(only),
        ["list"] => {
            for work in work::all() {
                let ways: Vec<_> = work.ways.iter().map(|way| way.name).collect();
                println!("{} ({})", work.name, ways.join(", "));
            }
        }
        ["one", work, way, rounds] => {
            let mut works = work::all().into_iter();
            let found = works.find(|one| one.name == work).expect("no such work");
            let way = found.ways.iter().find(|one| one.name == way);
            (way.expect("no such way").run)(rounds.parse().expect("a number of rounds"));
        }
        ["pending"] => println!("{}", pending::bytes()),
        ["net", ref rest @ ..] => net::run(rest),
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2);
        }
    }
}
