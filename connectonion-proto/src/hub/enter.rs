//! CONNECT: chooses the client's session and the newer copy of the conversation.

use rpc_core::Json;

use super::chat::chat_items;
use super::entry::{Intake, Origin, SessionEntry};
use super::event::{ConnectRequest, HubEvent, NewInput, Now, Reply};
use super::run_state::{count_messages, images_of_last_prompt, with_inputs};
use super::{Hub, Job};
use crate::console::Line;
use crate::frame::{Connected, ErrorFrame, SessionState};
use crate::id::{SessionId, runtime_input_id};
use crate::merge::merge;
use crate::session::{self, ConnId};
use crate::storage::{Record, RecordStatus};

impl Hub {
    /// Connects a client whose CONNECT was accepted. The answer may have to wait for the storage.
    pub fn connect(&mut self, conn: ConnId, connecting: ConnectRequest, now: Now) {
        let wanted = connecting.connect.session_id.as_deref();
        let wanted = wanted.filter(|id| !id.is_empty() && id.len() <= session::MAX_SESSION_ID);
        let unknown = wanted.filter(|id| {
            let session = self.registry.session(id);
            // Somebody else's session is not looked up: the client gets another one.
            let is_theirs = session.is_some_and(|it| it.owner != connecting.owner);
            let is_at_hand = self.entries.contains_key(*id);
            !is_theirs && !is_at_hand && self.registry.session_of(conn).is_none()
        });
        let Some(unknown) = unknown.map(SessionId::from) else {
            return self.enter(conn, &connecting, None, now);
        };
        let connecting = Box::new(connecting);
        let job = self.job(Job::Load { conn, connecting });
        self.entering.insert(conn, job);
        self.events.push_back(HubEvent::Load {
            job,
            session_id: unknown,
        });
    }

    pub(super) fn enter(
        &mut self,
        conn: ConnId,
        connecting: &ConnectRequest,
        stored: Option<Record>,
        now: Now,
    ) {
        let connect = &connecting.connect;
        let request = session::SessionRequest::new(connecting.owner)
            .with_session_id(connect.session_id.as_deref())
            .with_last_msg_id(connect.last_msg_id.as_deref())
            .with_stored_owner(stored.as_ref().and_then(|record| record.owner));
        let entered = self
            .registry
            .connect(conn, request, connecting.random, now.instant);
        let entered = match entered {
            Ok(entered) => entered,
            Err(error) => {
                let frame = ErrorFrame::new(error.to_string());
                return self.refuse_connect(conn, frame.with_retryable(error.is_retryable()));
            }
        };
        // Making room may have removed an old session.
        self.handle_timeout(now);
        let session_id = entered.session_id;
        let got_it = connect.session_id.as_deref() == Some(session_id.as_str());
        let stored = stored.filter(|_| got_it);
        let is_new = !self.entries.contains_key(&session_id);
        let again = stored.as_ref().filter(|_| is_new);
        let again = again.and_then(|record| self.interrupted(record));
        let stored = match &again {
            Some(_) => stored.and_then(|record| record.session),
            None => stored.and_then(|record| revive(record, now.unix)),
        };
        let entry = self.entries.entry(session_id.clone());
        let entry = entry.or_insert_with(|| {
            let mut entry = SessionEntry::new(connecting.owner);
            entry.copy = stored;
            entry.intake.extend(again.into_iter().flatten());
            entry
        });
        let is_rerunning = entry.is_rerunning();
        let handed = connect.session.as_ref();
        let text = |copy: Option<&Json>| copy.map(|it| it.get().to_owned());
        let ours = text(entry.settled());
        let merged = merge(ours.as_deref(), handed.map(Json::get));
        let mut newer = merged.server_newer;
        let is_running = entry.run().is_some();
        if is_rerunning {
            // What the client has of the interrupted run is over.
            newer = true;
        } else if !newer
            && !is_running
            && let Some(session) = handed.filter(|_| merged.session.is_some())
        {
            entry.copy = Some(session.clone());
            entry.origin = Origin::Elsewhere;
        }
        let mut copy = entry.settled().filter(|_| newer).cloned();
        if let Some(work) = entry
            .work
            .as_ref()
            .filter(|_| is_running && entered.gap.is_some())
        {
            // What was dropped cannot be sent again, so the client gets all that there is.
            copy = Some(work.render(session_id.as_str(), None, now.unix));
            newer = true;
        }
        let status = match is_rerunning {
            true => SessionState::Running,
            false => entered.status,
        };
        let is_resumed = status == SessionState::Running;
        let mut connected = Connected::new(session_id.as_str(), status);
        connected.bound_answers = is_resumed;
        connected.signature_recommended = connecting.recommend_signature;
        if let Some(copy) = copy {
            let items = chat_items(copy.get());
            connected = connected.with_newer(Some((copy, items)));
        }
        self.line(Line::Connected {
            owner: connecting.owner,
            session: session_id.as_str().to_owned(),
            status,
        });
        if let Some(session) = handed {
            let messages = count_messages(session.get());
            self.line(Line::ClientSession { messages });
        }
        if newer {
            self.line(Line::Merged);
        }
        if is_resumed {
            self.line(Line::Reattached);
        }
        self.reply(conn, Reply::Accept(Box::new(connected)));
        if let Some(failure) = entered.failure {
            self.reply(conn, Reply::Frame(failure));
        }
        if is_rerunning {
            self.next_intake(&session_id, now);
        }
    }

    /// Returns the prompts to run again, if the record is of an interrupted run: the one that began
    /// it, which is the last message of its conversation, and those acknowledged during it.
    fn interrupted(&mut self, record: &Record) -> Option<Vec<Intake>> {
        let may_again = record.reruns < self.config.max_reruns;
        if record.status != RecordStatus::Interrupted || !may_again {
            return None;
        }
        let images = images_of_last_prompt(record.session.as_ref()?)?;
        let first = Intake {
            conn: None,
            id: runtime_input_id(self.ids.next_bits()),
            input: NewInput::new(record.prompt.clone()).with_images(images),
            rerun: Some(record.reruns + 1),
        };
        let rest = record.inputs.iter().map(Intake::acknowledged);
        Some(std::iter::once(first).chain(rest).collect())
    }
}

/// Returns the conversation in a record, with the prompts that were acknowledged and not answered.
fn revive(record: Record, now: f64) -> Option<Json> {
    let session = record.session?;
    if record.inputs.is_empty() {
        return Some(session);
    }
    Some(with_inputs(&session, &record.inputs, now))
}
