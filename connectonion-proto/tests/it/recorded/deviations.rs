//! Where our host says something else than the recorded ones: the table `deviations.txt`.

/// What ours says instead, for one reason.
pub struct Deviation {
    /// The beginnings of the names of the recordings: `1.2.1/10`.
    pub of: Vec<String>,
    pub lines: Vec<Instead>,
}

/// What comes from ours where a recorded line is.
#[derive(Clone)]
pub struct Instead {
    /// A part of the recorded line, or its number: `@7`.
    pub line: String,
    /// The types of our frames; of an ERROR, the words follow.
    pub ours: Vec<String>,
    /// The run that begins with this line does not.
    pub refuses: bool,
}

/// Members that are there on one side only, by the type of the frame:
/// - ours speaks no protocol but the specification's, and clients refuse modes that they do not know;
/// - newer hosts number some errors, and say of some whether they may pass;
/// - a payee is told where one is set;
/// - newer hosts do without id and time of a change of mode in an idle session;
/// - what an administrator gets says success and whom it is about in every case;
/// - older clients read a question in `text`;
/// - ours says that it takes an answer twice without harm.
pub const MEMBERS: [(&str, &str); 13] = [
    ("CONNECTED", "bound_answers"),
    ("CONNECTED", "protocol"),
    ("CONNECTED", "session_modes"),
    ("ERROR", "code"),
    ("ERROR", "retryable"),
    ("ONBOARD_REQUIRED", "payment_address"),
    ("mode_changed", "id"),
    ("mode_changed", "ts"),
    ("mode_changed", "triggered_by"),
    ("mode_changed", "turns_left"),
    ("ADMIN_RESULT", "success"),
    ("ADMIN_RESULT", "client_id"),
    ("ask_user", "text"),
];

/// The table.
pub fn deviations() -> Vec<Deviation> {
    let mut table: Vec<Deviation> = Vec::new();
    let lines = include_str!("deviations.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(line) = line.strip_prefix("    ") else {
            let (of, why) = line.split_once(" | ").unwrap();
            assert!(!why.is_empty());
            table.push(Deviation {
                of: of.split(' ').map(str::to_owned).collect(),
                lines: Vec::new(),
            });
            continue;
        };
        let (part, ours) = line.split_once(" => ").unwrap();
        let ours = ours.split(" + ").filter(|it| *it != "nothing");
        let instead = Instead {
            line: part.strip_prefix('!').unwrap_or(part).to_owned(),
            ours: ours.map(str::to_owned).collect(),
            refuses: part.starts_with('!'),
        };
        table.last_mut().unwrap().lines.push(instead);
    }
    table
}
