//! [`Resume`]: the state that a client keeps between connections and between programs.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use rpc_core::json::{find_member, parse};
use rpc_core::{DecodeError, Json, Limits, Refused, Str, file};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::codec;
use crate::frame::Session;
use crate::id::{EventId, SessionId};

/// The state from which a client resumes: its session, the last event shown, and the conversation,
/// which the client owns. ConnectOnion specification, *Client Reconnect*.
///
/// ```
/// use connectonion_proto::client::Resume;
///
/// # let folder = std::env::temp_dir().join(format!("resume-doc-{}", std::process::id()));
/// # let file = folder.join("agent.json");
/// let mut resume = Resume::load(&file)?; // of the last program: none yet
/// assert_eq!(resume, Resume::default());
/// resume.session_id = Some("abc".into());
/// resume.save(&file)?;
/// assert_eq!(Resume::load(&file)?, resume);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resume {
    /// The session; `None` for a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The id of the last event that was shown. The host sends again what came after it. A question
    /// counts as shown when the agent has gone on after it: the program that resumes here is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_msg_id: Option<EventId>,
    /// The conversation: a [`Session`], as the host last sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Json>,
}

impl Resume {
    /// Reads what [`save`](Self::save) has written; a new session if there is no file.
    ///
    /// # Errors
    /// The system's error, or [`ErrorKind::InvalidData`] if the file holds something else.
    pub fn load(path: impl AsRef<Path>) -> io::Result<Self> {
        match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            text => {
                Self::parse(&text?).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
            }
        }
    }

    /// Writes this to a file, and creates its folder. The file is replaced as a whole, so a crash
    /// leaves the one before; others cannot read it.
    ///
    /// # Errors
    /// The system's error; the file is as it was.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let text = self.to_json().map_err(io::Error::other)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let write = |mut new: &File| new.write_all(text.as_bytes());
        file::replace(path, write, |error| error).map(drop)
    }

    /// Encodes this as JSON, to be stored.
    ///
    /// # Errors
    /// None in practice: the contents are JSON.
    pub fn to_json(&self) -> Result<String, Refused> {
        let mut text = String::new();
        codec::encode_into(self, &mut text)?;
        Ok(text)
    }

    /// Parses the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not a JSON object.
    pub fn parse(json: &str) -> Result<Self, DecodeError> {
        // A member alone is found in much that is not an object.
        Session::parse(json, &Limits::default())?;
        Ok(Self {
            session_id: text_of(json, "session_id").map(Into::into),
            last_msg_id: text_of(json, "last_msg_id").map(Into::into),
            session: find_member(json, "session").filter(|it| it.first_byte() == b'{'),
        })
    }

    /// Returns the conversation in a form that loses against any conversation of the host that is
    /// at least as long: send it when the host may have run a prompt since. Hosts up to 1.2.1
    /// compare the iterations of the last turn first, and consider an old turn with more of them
    /// the newer one.
    pub(super) fn session_before_a_run(&self, limits: &Limits) -> Option<Json> {
        let kept = self.session.as_ref()?;
        let parsed = Session::parse(kept.get(), limits).ok();
        let Some(mut session) = parsed.filter(|it| it.number("iteration").is_some()) else {
            return Some(kept.clone());
        };
        // What cannot be changed is sent as it is.
        let changed = session
            .set("iteration", &0)
            .and_then(|()| Json::of(&session));
        changed.ok().or_else(|| Some(kept.clone()))
    }
}

/// The state of a prompt according to a conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// The prompt was answered.
    Answer(Str),
    /// The prompt arrived and has no answer.
    Prompt,
    /// The prompt is not in the conversation.
    Nothing,
}

/// Looks for a prompt and its answer in a conversation. After a reconnect, this shows whether a
/// prompt arrived whose connection was lost. Hosts append to a prompt with files, so its beginning
/// is enough to match. `turn` is the number of prompts before it.
pub(super) fn find_answer(session: &Json, prompt: &str, turn: Option<u64>, max: &Limits) -> Match {
    let Ok(session) = Session::parse(session.get(), max) else {
        return Match::Nothing;
    };
    let after = session.get("turn").map(|turn| turn.get().parse::<u64>());
    if let (Some(before), Some(Ok(after))) = (turn, after)
        && after <= before
    {
        return Match::Nothing;
    }
    let messages = session.get("messages").map_or("null", Json::get);
    let Ok(messages) = parse::<Vec<&RawValue>>(messages, max) else {
        return Match::Nothing;
    };
    let mut found = Match::Nothing;
    for message in &messages {
        let message = message.get();
        match (text_of(message, "role").as_deref(), &found) {
            (Some("user"), _) if starts_with(message, prompt) => found = Match::Prompt,
            // Someone has said something else since.
            (Some("user"), Match::Answer(_)) => break,
            (Some("assistant"), Match::Prompt | Match::Answer(_)) if !uses_tools(message) => {
                if let Some(content) = text_of(message, "content").filter(|it| !it.is_empty()) {
                    found = Match::Answer(content);
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns a member that is a string.
fn text_of(object: &str, name: &str) -> Option<Str> {
    find_member(object, name)?.as_str().map(Str::from)
}

/// Returns whether the model continues after this message.
fn uses_tools(message: &str) -> bool {
    let calls = find_member(message, "tool_calls").filter(|calls| calls.first_byte() == b'[');
    calls.is_some_and(|calls| {
        calls
            .parse::<Vec<Json>>()
            .is_ok_and(|calls| !calls.is_empty())
    })
}

/// Returns whether a message begins with this prompt: as a text, or as the first text of several
/// parts.
fn starts_with(message: &str, prompt: &str) -> bool {
    let Some(content) = find_member(message, "content") else {
        return false;
    };
    if let Some(text) = content.as_str() {
        return text.starts_with(prompt);
    }
    let parts: Vec<Json> = content.parse().unwrap_or_default();
    let mut texts = parts.iter().filter_map(|part| text_of(part.get(), "text"));
    texts.any(|text| text.starts_with(prompt))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(session: &Value, prompt: &str, turn: Option<u64>) -> Match {
        let session = Json::of(session).unwrap();
        find_answer(&session, prompt, turn, &Limits::default())
    }

    #[test]
    fn the_answer_to_the_last_matching_prompt_is_found() {
        let session = json!({"turn": 2, "messages": [
            {"role": "user", "content": "hi"}, {"role": "assistant", "content": "old"},
            {"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": []},
            {"role": "tool", "content": "5"}, {"role": "assistant", "content": "new"},
        ]});
        assert_eq!(found(&session, "hi", Some(1)), Match::Answer("new".into()));
        assert_eq!(found(&session, "hi", None), Match::Answer("new".into()));
        assert_eq!(
            found(&session, "hi", Some(2)),
            Match::Nothing,
            "no new turn"
        );
        assert_eq!(found(&session, "ho", Some(1)), Match::Nothing);
    }

    #[test]
    fn a_prompt_without_an_answer_was_delivered() {
        let session = json!({"messages": [{"role": "user", "content": "hi"}]});
        assert_eq!(found(&session, "hi", None), Match::Prompt);
    }

    #[test]
    fn prompts_with_files_and_images_are_found_by_their_beginning() {
        let session = json!({"messages": [
            {"role": "user", "content": "read it\n\n<system-reminder>.."},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "and this"}]},
            {"role": "assistant", "content": "a cat"},
        ]});
        assert_eq!(
            found(&session, "and this", None),
            Match::Answer("a cat".into())
        );
        assert_eq!(
            found(&session, "read it", None),
            Match::Answer("yes".into())
        );
    }

    #[test]
    fn an_invalid_conversation_yields_no_answer() {
        for odd in [
            json!({}),
            json!({"messages": {}}),
            json!({"messages": [1, null]}),
            json!([]),
        ] {
            assert_eq!(found(&odd, "hi", None), Match::Nothing);
        }
    }

    #[test]
    fn a_saved_resume_round_trips() {
        let session = Json::of(&json!({"turn": 3, "theirs": [1]})).unwrap();
        let resume = Resume {
            session_id: Some("a\"b".into()),
            last_msg_id: Some("ev-1".into()),
            session: Some(session),
        };
        assert_eq!(Resume::parse(&resume.to_json().unwrap()).unwrap(), resume);
        assert_eq!(Resume::parse("{}").unwrap(), Resume::default());
        for bad in ["", "[]", "null", r#""session_id""#] {
            assert!(Resume::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_conversation_from_before_a_run_loses_to_the_hosts() {
        let session = Json::of(&json!({"turn": 3, "iteration": 7, "x": [1]})).unwrap();
        let mut resume = Resume::default();
        let limits = Limits::default();
        assert_eq!(resume.session_before_a_run(&limits), None);
        resume.session = Some(session);
        let sent = resume.session_before_a_run(&limits).unwrap();
        assert_eq!(sent.get(), r#"{"iteration":0,"turn":3,"x":[1]}"#);
    }

    #[test]
    fn a_corrupt_session_file_is_an_error_and_a_missing_one_is_new() {
        let folder = std::env::temp_dir().join(format!("resume-{}", std::process::id()));
        let file = folder.join("of").join("an.agent");
        assert_eq!(Resume::load(&file).unwrap(), Resume::default());
        let mut resume = Resume::default();
        for id in ["abc", "abcd"] {
            resume.session_id = Some(id.into());
            resume.save(&file).unwrap();
            assert_eq!(Resume::load(&file).unwrap(), resume);
        }
        fs::write(&file, "[]").unwrap();
        let error = Resume::load(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        fs::remove_dir_all(folder).unwrap();
    }
}
