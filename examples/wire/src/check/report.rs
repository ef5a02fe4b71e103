//! What a check has found, for people and programs: JSON, `JUnit` XML and one HTML page.

use std::time::SystemTime;

use quick_junit::{NonSuccessKind, Report as JUnit, TestCase, TestCaseStatus, TestSuite};
use rpc_core::testing::Side;
use serde::Serialize;

use super::{Level, Outcome, Row, Suite, Verdict};
use crate::play::{Entry, Settings};
use crate::{Protocol, side};

/// A report: what was checked, and each row with its verdict.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    /// The name of the protocol.
    pub protocol: &'static str,
    /// Who was checked.
    pub role: &'static str,
    /// Its URL or its command.
    pub target: &'a str,
    /// When it was checked.
    pub date: String,
    /// The settings: times, and the names of the variables that were set.
    pub settings: String,
    /// How many rows have which verdict.
    pub counts: Counts,
    /// The rows.
    pub rows: Vec<ReportRow<'a>>,
}

/// How many rows have which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Counts {
    /// Rows that hold.
    pub pass: usize,
    /// Rows that the specification demands, and that fail.
    pub fail_must: usize,
    /// Rows that the specification suggests, and that fail.
    pub fail_should: usize,
    /// Rows that hold, but took longer than they may.
    pub late: usize,
    /// Rows that could not begin.
    pub blocked: usize,
    /// Rows that do not apply.
    pub not_applicable: usize,
}

/// A row of a report.
#[derive(Debug, Serialize)]
pub(crate) struct ReportRow<'a> {
    /// What was checked.
    #[serde(flatten)]
    pub row: &'a Row,
    /// What was found.
    #[serde(flatten)]
    pub outcome: &'a Outcome,
}

impl<'a> Report<'a> {
    /// Creates the report of a suite's outcomes, which are in its order.
    pub(crate) fn new(
        protocol: Protocol,
        role: Side,
        target: &'a str,
        suite: &'a Suite,
        settings: &Settings,
        outcomes: &'a [Outcome],
    ) -> Self {
        let mut counts = Counts::default();
        let rows = suite.rows.iter().zip(outcomes).map(|(row, outcome)| {
            *match (outcome.verdict, row.level) {
                (Verdict::Pass, _) => &mut counts.pass,
                (Verdict::Fail, Level::Must) => &mut counts.fail_must,
                (Verdict::Fail, Level::Should) => &mut counts.fail_should,
                (Verdict::Late, _) => &mut counts.late,
                (Verdict::Blocked, _) => &mut counts.blocked,
                (Verdict::NotApplicable, _) => &mut counts.not_applicable,
            } += 1;
            ReportRow { row, outcome }
        });
        let rows = rows.collect();
        Self {
            protocol: protocol.name(),
            role: side(role),
            target,
            date: rpc_core::timestamp::format(SystemTime::now()),
            settings: settings.words(),
            counts,
            rows,
        }
    }

    /// Writes the report as `JUnit` XML: a section is a class, a row a test. A row that fails without
    /// being demanded is reported as skipped, so that it fails no build.
    ///
    /// # Errors
    /// It cannot be written as XML.
    pub(crate) fn junit(&self) -> Result<String, String> {
        let mut suite = TestSuite::new(format!("{} {}", self.protocol, self.role));
        for ReportRow { row, outcome } in &self.rows {
            let mut status = match (outcome.verdict, row.level) {
                (Verdict::Pass | Verdict::Late, _) => TestCaseStatus::success(),
                (Verdict::Fail, Level::Must) => {
                    TestCaseStatus::non_success(NonSuccessKind::Failure)
                }
                (Verdict::Blocked, _) => TestCaseStatus::non_success(NonSuccessKind::Error),
                _ => TestCaseStatus::skipped(),
            };
            if let Some(why) = outcome.why().filter(|_| outcome.verdict != Verdict::Late) {
                status.set_message(format!("{}: {why}", row.says));
            }
            if outcome.is_failure() {
                status.set_description(evidence(&outcome.evidence));
            }
            let mut case = TestCase::new(&*row.id, status);
            case.set_classname(&*row.section);
            case.set_time(std::time::Duration::from_millis(outcome.millis));
            suite.add_test_case(case);
        }
        let mut report = JUnit::new(self.target);
        report.add_test_suite(suite);
        let mut xml = report.to_string().map_err(|error| error.to_string())?;
        xml.retain(is_allowed);
        Ok(xml)
    }

    /// Writes the report as one page, which needs no other file and runs no script.
    pub(crate) fn html(&self) -> String {
        let title = format!("{} {}: {}", self.protocol, self.role, self.target);
        let mut page = format!(
            "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content=\"width=device-width\">\n\
             <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n<p>{}\n<p>{}, {}\n",
            escaped(&self.counts.to_string()),
            escaped(&self.date),
            escaped(&self.settings),
            title = escaped(&title),
        );
        let is_failure = |row: &&ReportRow<'_>| row.outcome.is_failure();
        let failures: Vec<_> = self.rows.iter().filter(is_failure).collect();
        if !failures.is_empty() {
            page.push_str("<h2>What fails</h2>\n");
            failures.iter().for_each(|row| page.push_str(&row.html()));
        }
        let mut section = "";
        for row in self.rows.iter().filter(|row| !is_failure(row)) {
            if row.row.section != section {
                section = &row.row.section;
                page.push_str(&format!("<h2>{}</h2>\n", escaped(section)));
            }
            page.push_str(&row.html());
        }
        page
    }
}

impl ReportRow<'_> {
    fn html(&self) -> String {
        let Self { row, outcome } = self;
        let class = match outcome.verdict {
            Verdict::Pass => "pass",
            Verdict::Late | Verdict::NotApplicable => "na",
            _ => "fail",
        };
        let why = outcome.why().unwrap_or_default();
        format!(
            "<details class={class} id=\"{id}\"{open}><summary><b>{word}</b> {level} {says} <small>{section}, <code>{id}</code></small>\
             </summary>\n<p>{why}</p>\n<pre>{evidence}</pre></details>\n",
            id = escaped(&row.id),
            open = if class == "fail" { " open" } else { "" },
            word = outcome.verdict.word(),
            level = row.level.name(),
            says = escaped(&row.says),
            section = escaped(&row.section),
            why = escaped(&why),
            evidence = escaped(&evidence(&outcome.evidence)),
        )
    }
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1b1b1b;background:#fff}h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem}details{border-left:4px solid \
#2e7d32;padding:.2rem .8rem;margin:.3rem 0}.fail{border-color:#b3261e}.na{border-color:#8a8a8a}summary{cursor:pointer}\
b{display:inline-block;min-width:3.2rem}.fail b{color:#b3261e}.pass b{color:#1f6b25}pre{white-space:pre-wrap;\
overflow-wrap:anywhere;background:#f3f3f3;padding:.5rem}@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}\
pre{background:#262626}.fail b{color:#ff8a80}.pass b{color:#81c784}}";

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (musts, shoulds) = (self.fail_must, self.fail_should);
        write!(
            f,
            "{} hold, {musts} MUST and {shoulds} SHOULD fail, ",
            self.pass
        )?;
        write!(f, "{} late, {} could not begin, ", self.late, self.blocked)?;
        write!(f, "{} not applicable", self.not_applicable)
    }
}

impl Outcome {
    /// Returns why the row does not hold, or was not checked.
    pub(crate) fn why(&self) -> Option<String> {
        let reason = self.reason.as_ref()?;
        let words = match self.verdict {
            Verdict::Pass | Verdict::NotApplicable => "",
            Verdict::Fail => "at the step ",
            Verdict::Late => "late at the step ",
            Verdict::Blocked => "could not begin: ",
        };
        let step = self.step.as_ref();
        let step = step.map_or_else(String::new, |step| format!("{step}: "));
        Some(format!("{words}{step}{reason}"))
    }

    /// Returns whether the row does not hold, or could not begin.
    pub(crate) const fn is_failure(&self) -> bool {
        matches!(self.verdict, Verdict::Fail | Verdict::Blocked)
    }
}

impl Verdict {
    /// Returns the word for it at a terminal.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Late => "late",
            Self::Blocked => "stop",
            Self::NotApplicable => "n/a",
        }
    }
}

/// Writes the evidence of a row, a frame a line.
pub(crate) fn evidence(entries: &[Entry]) -> String {
    let lines = entries.iter().map(|entry| {
        let arrow = if entry.sent { "->" } else { "<-" };
        let text = crate::text::printable(&entry.text);
        format!(
            "{:>6} ms  #{} {arrow} {text}\n",
            entry.millis, entry.connection
        )
    });
    lines.collect()
}

/// Returns whether a character may be in XML.
const fn is_allowed(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Escapes what would be markup, and characters that control a terminal or reorder text.
fn escaped(text: &str) -> String {
    let lines = crate::text::printable_lines(text);
    let mut out = String::with_capacity(lines.len());
    for letter in lines.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn outcomes(suite: &Suite) -> Vec<Outcome> {
        let verdicts = [Verdict::Pass, Verdict::Fail, Verdict::NotApplicable];
        let entry = Entry {
            millis: 3,
            connection: 1,
            sent: false,
            text: "]]>\u{1b}<b>\u{fffe}\u{ffff}\0".to_owned(),
        };
        let verdicts = verdicts.iter().cycle().take(suite.rows.len());
        verdicts
            .map(|verdict| Outcome {
                verdict: *verdict,
                reason: Some("<script>alert(1)</script>\u{1b}[2J\u{fffe}".to_owned()),
                evidence: vec![entry.clone()],
                ..Outcome::default()
            })
            .collect()
    }

    #[test]
    fn no_report_passes_markup_or_controls_of_a_peer_on() {
        let suite = Suite::load(Protocol::Exoclaw, Side::Server).unwrap();
        let outcomes = outcomes(&suite);
        let settings = Settings {
            timeout: Duration::from_secs(5),
            quiet: Duration::ZERO,
            start: Settings::START,
            jobs: 1,
            variables: crate::play::Variables::default(),
            pace: std::sync::Arc::default(),
        };
        let report = Report::new(
            Protocol::Exoclaw,
            Side::Server,
            "ws://x/<i>",
            &suite,
            &settings,
            &outcomes,
        );
        let (page, xml) = (report.html(), report.junit().unwrap());
        for text in [&page, &xml] {
            assert!(
                !text.contains("<script")
                    && !text.contains("<i>")
                    && !text.contains("<b>\n")
                    && !text.contains('\u{1b}'),
                "{text}"
            );
        }
        assert!(
            xml.chars().all(is_allowed)
                && xml.contains(r#"<failure message="#)
                && xml.contains("<skipped"),
            "{xml}"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["rows"][1]["verdict"], "fail");
        let counts = report.counts;
        let all = counts.pass
            + counts.fail_must
            + counts.fail_should
            + counts.late
            + counts.blocked
            + counts.not_applicable;
        assert_eq!(all, suite.rows.len());
        assert!(counts.fail_must > 0 && counts.fail_should > 0, "{counts}");
    }
}
