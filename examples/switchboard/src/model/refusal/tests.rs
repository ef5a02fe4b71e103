//! What each provider says, and what it means.

use super::*;

fn of(status: u16, body: &str) -> Refusal {
    Report::read(body).refusal((status != 200).then_some(status))
}

#[test]
fn a_provider_is_quoted_from_any_form_of_error() {
    let quoted = include_str!("cases.txt").lines();
    let quoted = quoted.filter_map(|line| line.strip_prefix('"')?.split_once("\" "));
    let odd = [
        ("  plain words\n", "plain words"),
        ("bad\0 \u{1b}[31mkey", "bad [31mkey"),
        ("<html>\n<b>502</b></html>", ""),
        ("", ""),
        ("\0", ""),
    ];
    for (words, body) in quoted.chain(odd.map(|(body, words)| (words, body))) {
        assert_eq!(Report::read(body).message, words, "{body}");
    }
}

#[test]
fn each_provider_is_understood_in_its_own_words() {
    let lines = include_str!("cases.txt").lines();
    for line in lines.filter(|it| it.starts_with(char::is_numeric)) {
        let (status, rest) = line.split_once(' ').unwrap();
        let (refusal, body) = rest.split_once(' ').unwrap_or((rest, ""));
        let found = of(status.parse().unwrap(), body);
        assert_eq!(format!("{found:?}"), refusal, "{line}");
    }
}
