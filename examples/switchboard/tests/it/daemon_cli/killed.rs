//! What a killed daemon has left.

use super::*;

#[cfg(unix)]
#[test]
fn a_start_removes_the_leftovers_of_a_killed_daemon_and_nothing_else() {
    let place = Fixture::new();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let (gone, here) = (gone.id(), std::process::id());
    let name = |process: u32, end: &str| place.0.join(format!("daemon-{process}-{end}"));
    let left = name(gone, "0123456789abcdef");
    let others = [
        name(here, "0123456789abcdef"),
        name(gone, "0123456789abcde"),
        name(gone, "work"),
    ];
    for folder in others.iter().chain([&left]) {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("x"), "x").unwrap();
    }
    let _server = place.serve(&[]);
    assert!(!left.exists());
    assert!(others.iter().all(|folder| folder.join("x").exists()));
}
