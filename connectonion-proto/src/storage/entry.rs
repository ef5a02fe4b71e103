//! Lines that say what a record adds to the one before it, so that a log grows with what is said and not with
//! the conversation.
//!
//! A long text is written once: in its other places, a short one stands for it, NUL and the number of the
//! text among those of the record before and of this one. Of a session that is known, a line has what
//! is new. Both is said by the member `short`; other lines are read as they are.

use std::borrow::Cow;

use rpc_core::encode::{encode, encode_into};
use rpc_core::json::{each_member, find_member, open, parse};
use rpc_core::{Json, Limits, Str};
use serde::{Deserialize, Deserializer, Serialize};

use super::record::{Record, RecordStatus};
use crate::frame::Session;

/// Shorter texts are repeated.
const LONG: usize = 1024;
/// How a text that stands for a long one begins, in JSON.
const MARK: &str = "\"\\u0000";

rpc_core::members! {
    /// The member `short` of a line.
    #[derive(Default, Serialize, Deserialize)]
    struct Short {
        /// The size of the session that the line adds to.
        after: Option<usize>,
        /// The members of the session in order: null if it is as before, or a [`Change`].
        session: Option<Json>,
    }

    /// The outcome of a member of a session.
    #[derive(Default, Serialize, Deserialize)]
    struct Change {
        /// Its value.
        is: Option<Json>,
        /// What was appended to it: an array.
        adds: Option<Json>,
    }
}

/// Returns the line of a record: what it adds to the record before it, or all, if that is not much more, or
/// when it `is_due` and the record has its session. Then nothing before it is needed, which is returned, too.
pub(crate) fn line_of(record: &Record, before: Option<&Record>, is_due: bool) -> (String, bool) {
    let before = before.filter(|it| record.follows(it));
    let size = record.session.as_ref().map(|session| session.get().len());
    // The events of a run that is run again are needed.
    let goes_on = record.status == RecordStatus::Running && record.reruns > 0;
    let is_whole = before.is_none() || is_due && size.is_some() && !goes_on;
    if !is_whole
        && let Some(added) = write(record, before)
        && size.is_none_or(|size| added.len() < size / 2)
    {
        return (added, false);
    }
    let mut next = record.clone();
    next.inherit(before);
    let line = write(&next, None).unwrap_or_else(|| next.to_line());
    (line, is_whole)
}

/// Returns whether a line says anything of a session.
pub(crate) fn has_session(line: &str) -> bool {
    let has = |object: &str| find_member(object, "session").is_some();
    has(line) || find_member(line, "short").is_some_and(|short| has(short.get()))
}

/// Returns a short line for a record, from which it [can be read](read) after `before`; `None` if there
/// is none.
fn write(record: &Record, before: Option<&Record>) -> Option<String> {
    let mut next = record.clone();
    // A line that has all of the session needs no other line.
    let base = before.filter(|it| it.session.is_some() || record.session.is_none());
    let mut texts = Texts::of(base);
    let mut short = Short::default();
    next.prompt = texts.shorten(&next.prompt);
    for prompt in &mut next.inputs {
        prompt.text = texts.shorten(&prompt.text);
    }
    let base = base.and_then(|base| base.session.as_ref());
    let mut read_base = None;
    if let (Some(base), Some(session)) = (base, next.session.take()) {
        let before = read_base.insert(members(base)?);
        short.after = Some(base.get().len());
        short.session = Some(texts.shorten_all(&changes(before, &session)?)?);
    } else if let Some(session) = &record.session {
        next.session = Some(texts.shorten_all(session)?);
    }
    let mut line = next.to_line();
    line.truncate(line.len() - 1);
    line.push_str(",\"short\":");
    line.push_str(encode(&short).ok()?.as_str());
    line.push('}');
    let mut whole = record.clone();
    whole.inherit(before);
    // Lines do not have these.
    whole.events.clear();
    for prompt in &mut whole.inputs {
        (prompt.conn, prompt.files) = (None, Vec::new());
    }
    let read = read_with(&line, before, |_| read_base)?;
    (read == whole).then_some(line)
}

/// Reads a line, and completes it with the record before it. `None` if it is not a record, or not one
/// that follows this one.
pub(crate) fn read(line: &str, before: Option<&Record>) -> Option<Record> {
    read_with(line, before, members)
}

/// Does so with the members of the session before it.
fn read_with<'r>(
    line: &str,
    before: Option<&'r Record>,
    members: impl FnOnce(&'r Json) -> Option<Members<'r>>,
) -> Option<Record> {
    let Line(mut record, short) = parse(line, &Limits::unlimited()).ok()?;
    let before = before.filter(|it| record.follows(it));
    if let Some(short) = short.filter(|it| it.first_byte() == b'{') {
        let short: Short = parse(short.get(), &Limits::unlimited()).ok()?;
        let mut texts = Texts::of(before.filter(|_| record.session.is_none()));
        record.prompt = texts.lengthen(&record.prompt)?;
        for prompt in &mut record.inputs {
            prompt.text = texts.lengthen(&prompt.text)?;
        }
        record.session = match (short.session, record.session) {
            (Some(changes), _) => {
                let base = before?.session.as_ref();
                let base = base.filter(|base| Some(base.get().len()) == short.after)?;
                Some(changed(&members(base)?, &texts.lengthen_all(&changes)?)?)
            }
            (None, Some(session)) => Some(texts.lengthen_all(&session)?),
            (None, None) => None,
        };
    }
    record.inherit(before);
    Some(record)
}

/// The long texts that are known, each once.
struct Texts(Vec<Str>);

impl Texts {
    fn of(record: Option<&Record>) -> Self {
        let mut texts = Self(Vec::new());
        if let Some(record) = record {
            texts.shorten(&record.prompt);
            for prompt in &record.inputs {
                texts.shorten(&prompt.text);
            }
        }
        texts
    }

    /// Returns what stands for a text: itself, if it is new.
    fn shorten(&mut self, text: &Str) -> Str {
        if text.len() < LONG {
            return text.clone();
        }
        match self.0.iter().position(|known| known == text) {
            Some(number) => format!("\0{number}").into(),
            None => {
                self.0.push(text.clone());
                text.clone()
            }
        }
    }

    fn lengthen(&mut self, text: &Str) -> Option<Str> {
        match text.strip_prefix('\0') {
            Some(number) => self.0.get(number.parse::<usize>().ok()?).cloned(),
            None => Some(self.shorten(text)),
        }
    }

    /// Returns JSON in which the known texts are short; `None` if it says what stands for them by itself.
    fn shorten_all(&self, json: &Json) -> Option<Json> {
        let is_free = !json.get().contains(MARK);
        is_free.then(|| self.replace(json, |long, short| (long, short)))?
    }

    fn lengthen_all(&self, json: &Json) -> Option<Json> {
        self.replace(json, |long, short| (short, long))
    }

    fn replace(&self, json: &Json, order: fn(String, String) -> (String, String)) -> Option<Json> {
        let mut text = Cow::Borrowed(json.get());
        for (number, known) in self.0.iter().enumerate() {
            let long = encode(&**known).ok()?.as_str().to_owned();
            let (from, to) = order(long, format!("{MARK}{number}\""));
            if text.contains(&from) {
                text = text.replace(&from, &to).into();
            }
        }
        match text {
            Cow::Borrowed(_) => Some(json.clone()),
            Cow::Owned(text) => Json::new(&text).ok(),
        }
    }
}

/// A record, and the member `short` of its line.
struct Line(Record, Option<Json>);

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut short = None;
        let keep = |name: &str, value| {
            if name == "short" {
                short = Some(value);
            }
        };
        let record = Record::deserialize(open(from, keep))?;
        Ok(Self(record, short))
    }
}

/// The members of a session, as they stand in it.
type Members<'j> = Vec<(Cow<'j, str>, &'j str)>;

fn members(session: &Json) -> Option<Members<'_>> {
    let mut members = Vec::new();
    each_member(session.get(), |name, value| members.push((name, value))).ok()?;
    Some(members)
}

fn get<'j>(members: &Members<'j>, name: &str) -> Option<&'j str> {
    let (_, value) = members.iter().rev().find(|(known, _)| known == name)?;
    Some(*value).filter(|value| *value != "null")
}

/// Returns the members of a session as [`Change`]s of another one.
fn changes(base: &Members<'_>, session: &Json) -> Option<Json> {
    let mut changes = Session::new();
    for (name, value) in members(session)? {
        let before = get(base, &name);
        let change = if before == Some(value) {
            None
        } else {
            let adds = before.and_then(|before| appended(before, value));
            // It was read on the way.
            let whole = || Json::from_checked(value.to_owned());
            let is = adds.is_none().then(whole);
            Some(Change { is, adds })
        };
        changes.set(&name, &change).ok()?;
    }
    Json::of(&changes).ok()
}

/// Returns a session after [`changes`].
fn changed(base: &Members<'_>, changes: &Json) -> Option<Json> {
    let mut session = String::from("{");
    for (name, change) in members(changes)? {
        if session.len() > 1 {
            session.push(',');
        }
        encode_into(&name, &mut session).ok()?;
        session.push(':');
        match parse::<Option<Change>>(change, &Limits::unlimited()).ok()? {
            None => session.push_str(get(base, &name)?),
            Some(Change { is: Some(is), .. }) => session.push_str(is.get()),
            Some(Change { adds, .. }) => {
                let (before, adds) = (inside(get(base, &name)?)?, adds?);
                let adds = inside(adds.get())?;
                if before.is_empty() || adds.is_empty() {
                    return None;
                }
                session.extend(["[", before, ",", adds, "]"]);
            }
        }
    }
    session.push('}');
    Some(Json::from_checked(session))
}

/// Returns the items behind those of an array that begins alike.
fn appended(before: &str, list: &str) -> Option<Json> {
    let before = inside(before).filter(|before| !before.is_empty())?;
    let items = inside(list)?.strip_prefix(before)?.strip_prefix(',')?;
    Json::new(&format!("[{items}]")).ok()
}

/// Returns the items of an array.
fn inside(list: &str) -> Option<&str> {
    let items = list.strip_prefix('[')?.strip_suffix(']')?;
    Some(items.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::RecordStatus;

    fn record(prompt: &str, session: &str) -> Record {
        let mut record = Record::new("s", RecordStatus::Running, prompt, 1.0);
        record.session = Some(Json::new(session).unwrap());
        record
    }

    fn said(long: &str, rest: &str) -> String {
        format!(r#"{{"messages":[{{"content":"{long}"}}{rest}],"turn":1,"user_prompt":"{long}"}}"#)
    }

    #[test]
    fn a_record_stores_only_new_text_once() {
        let long = "x\u{e9}".repeat(LONG);
        let began = record(&long, &said(&long, ""));
        let line = write(&began, None).unwrap();
        assert_eq!(line.matches(&long).count(), 1, "{line}");
        assert_eq!(read(&line, None).as_ref(), Some(&began));
        let mut next = record(&long, &said(&long, r#",{"content":"hi"}"#));
        next.status = RecordStatus::Done;
        next.result = Some("hi".into());
        let mut waiting = crate::hub::Prompt::new("y".repeat(LONG));
        waiting.id = "w".into();
        next.inputs = vec![waiting.clone(), waiting];
        let line = write(&next, Some(&began)).unwrap();
        assert!(line.len() < 2 * LONG, "{line}");
        assert_eq!(read(&line, Some(&began)), Some(next));
    }

    #[test]
    fn a_delta_is_read_only_after_its_base_record() {
        let long = "x".repeat(LONG);
        let began = record(&long, &said(&long, ""));
        let next = record(&long, &said(&long, r#",{"content":"hi"}"#));
        let line = write(&next, Some(&began)).unwrap();
        let other = record(&long, r#"{"messages":[]}"#);
        for before in [None, Some(&other)] {
            assert_eq!(read(&line, before), None);
        }
    }

    #[test]
    fn incompressible_records_are_stored_whole() {
        let long = "x".repeat(LONG);
        let between = format!("{},", ",[1]".repeat(LONG));
        for (prompt, session) in [
            // It looks as if it were short.
            (&long, said(&long, r#",{"content":"\u00000"}"#)),
            // What stands between two texts looks like the prompt.
            (&between, format!(r#"{{"messages":["a"{between}"b"]}}"#)),
            // White space that is not kept.
            (&long, "{\"messages\":[\n]}".to_owned()),
        ] {
            assert_eq!(write(&record(prompt, &session), None), None);
        }
    }

    #[test]
    fn members_keep_their_order_and_removed_ones_stay_removed() {
        let base = r#"{"a":[ 1 ],"b":[],"c":"x","d":null}"#;
        for session in [
            r#"{"c":"x","a":[ 1,2],"b":[3]}"#,
            r#"{"a":[1],"e":{"is":1},"b":[]}"#,
            "{}",
        ] {
            let (base, session) = (Json::new(base).unwrap(), Json::new(session).unwrap());
            let base = members(&base).unwrap();
            let changes = changes(&base, &session).unwrap();
            assert_eq!(changed(&base, &changes), Some(session));
        }
    }
}
