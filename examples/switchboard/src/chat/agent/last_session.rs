//! [`LastSession`]: the last session with each agent, in a file.

use std::path::{Path, PathBuf};

use connectonion_proto::client::Resume;

use crate::cli::{Failure, complain};

/// Keeps the session with one agent.
#[derive(Debug)]
pub(crate) struct LastSession {
    file: PathBuf,
    written: Option<Resume>,
}

impl LastSession {
    /// For the agent that is called like this, in a folder for all.
    pub(crate) fn new(home: &Path, agent: &str) -> Self {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '_'
            }
        };
        let name: String = agent.chars().map(plain).take(100).collect();
        Self {
            file: home.join("sessions").join(format!("{name}.json")),
            written: None,
        }
    }

    /// The session that was kept last.
    pub(crate) fn load(&self) -> Result<Option<Resume>, Failure> {
        let name = self.file.display();
        let last = Resume::load(&self.file)
            .map_err(|error| Failure::new(format_args!("{name}: {error}")))?;
        Ok(Some(last).filter(|last| last.session_id.is_some()))
    }

    /// Keeps a session, if it is another than the one that was kept last.
    pub(crate) fn keep(&mut self, session: Resume) {
        if self.written.as_ref() == Some(&session) || session.session_id.is_none() {
            return;
        }
        match session.save(&self.file) {
            Ok(()) => self.written = Some(session),
            Err(error) => {
                let name = self.file.display();
                complain(format_args!(
                    "warning: the session is not kept: {name}: {error}"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;

    #[test]
    fn a_session_is_found_by_its_agents_name() {
        let home = Folder::new();
        let mut keeper = LastSession::new(&home, "ws://127.0.0.1:8000/ws");
        assert_eq!(keeper.load().unwrap(), None);
        let mut session = Resume::default();
        keeper.keep(session.clone());
        assert_eq!(keeper.load().unwrap(), None);
        session.session_id = Some("abc".into());
        keeper.keep(session.clone());
        assert_eq!(keeper.load().unwrap(), Some(session));
        let other = LastSession::new(&home, "../../etc");
        assert_eq!(other.load().unwrap(), None);
        assert_eq!(other.file.parent(), keeper.file.parent());
    }
}
