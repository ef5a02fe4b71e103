//! Events, clients and outcomes as JSON, for programs.

use serde_json::{Value, json};
use smarthole_proto::hub::{HubEvent, Outcome, Settlement, Unroutable};
use smarthole_proto::router::{Candidate, Rejection};

/// An event, if programs care for it.
pub(crate) fn event(event: &HubEvent) -> Option<Value> {
    Some(match event {
        HubEvent::Registered {
            client_id, name, ..
        } => json!({ "event": "registered", "client": **name, "clientId": client_id.as_str() }),
        HubEvent::Left { name, .. } => json!({ "event": "left", "client": **name }),
        HubEvent::Route {
            message, request, ..
        } => {
            let candidates: Vec<&str> = request.candidates.iter().map(|it| &*it.name).collect();
            json!({
                "event": "choosing",
                "id": message.as_str(),
                "text": *request.text,
                "candidates": candidates,
                "tried": tried(&request.rejections),
            })
        }
        HubEvent::Delivered {
            message,
            client,
            direct,
            text,
            reason,
        } => {
            let mut value = about("delivered", message.as_str(), client);
            value["direct"] = json!(direct);
            value["text"] = json!(**text);
            if let Some(reason) = reason {
                value["reason"] = json!(**reason);
            }
            value
        }
        HubEvent::Acked {
            message,
            client,
            late,
        } => {
            let mut value = about("acked", message.as_str(), client);
            value["late"] = json!(late);
            value
        }
        HubEvent::Rejected {
            message,
            client,
            reason,
            timed_out,
            late,
        } => {
            let mut value = about("rejected", message.as_str(), client);
            value["reason"] = json!(**reason);
            value["timedOut"] = json!(timed_out);
            value["late"] = json!(late);
            value
        }
        HubEvent::Notification {
            message,
            client,
            title,
            body,
            priority,
            late,
        } => {
            let mut value = about("notification", message.as_str(), client);
            value["title"] = json!(**title);
            value["body"] = json!(**body);
            value["priority"] = json!(priority.as_str());
            value["late"] = json!(late);
            value
        }
        HubEvent::Unroutable {
            message,
            text,
            why,
            tried: rejections,
        } => json!({
            "event": "unroutable",
            "id": message.as_str(),
            "text": **text,
            "code": code(why),
            "message": why.to_string(),
            "tried": tried(rejections),
        }),
        HubEvent::Settled {
            message, outcomes, ..
        } => json!({
            "event": "settled",
            "id": message.as_str(),
            "outcomes": settled(outcomes),
        }),
        HubEvent::Ignored {
            message_id, why, ..
        } => json!({ "event": "ignored", "id": **message_id, "message": why.to_string() }),
        _ => return None,
    })
}

fn about(name: &str, message: &str, client: &str) -> Value {
    json!({ "event": name, "id": message, "client": client })
}

const fn code(why: &Unroutable) -> &'static str {
    match why {
        Unroutable::NoClients => "NO_CLIENTS",
        Unroutable::Router(_) => "ROUTER_FAILED",
        Unroutable::NobodyChosen => "NOBODY_CHOSEN",
        Unroutable::Exhausted => "EXHAUSTED",
        Unroutable::Rejected => "REJECTED",
        _ => "UNROUTABLE",
    }
}

fn tried(rejections: &[Rejection]) -> Value {
    let one = |it: &Rejection| json!({ "client": *it.client, "reason": *it.reason });
    rejections.iter().map(one).collect()
}

/// What became of a message at everybody who got it.
pub(crate) fn settled(outcomes: &[Settlement]) -> Value {
    let one = |it: &Settlement| {
        let mut value = json!({ "client": *it.client, "outcome": outcome(&it.outcome) });
        if let Outcome::Rejected { reason } = &it.outcome {
            value["reason"] = json!(**reason);
        }
        value
    };
    outcomes.iter().map(one).collect()
}

pub(crate) const fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Acked => "acked",
        Outcome::Notified => "notified",
        Outcome::Rejected { .. } => "rejected",
        Outcome::TimedOut => "timedOut",
        _ => "other",
    }
}

/// Who is connected.
pub(crate) fn clients(clients: &[Candidate]) -> Value {
    let one = |it: &Candidate| {
        let hints: Vec<&str> = it.capabilities.iter().map(AsRef::as_ref).collect();
        json!({ "name": *it.name, "description": *it.description, "capabilities": hints })
    };
    clients.iter().map(one).collect()
}
