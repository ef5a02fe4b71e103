//! The events, clients and outcomes of a router as JSON, for programs.

use serde_json::{Value, json};
use smarthole_proto::hub::{
    HistoryEntry, HubEvent, Outcome, RegisteredClient, Settlement, Unroutable,
};
use smarthole_proto::net::Settled;
use smarthole_proto::router::Rejection;

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
            let candidates: Vec<_> = request.candidates.iter().map(|it| &it.name).collect();
            json!({
                "event": "choosing", "id": message, "text": request.text, "candidates": candidates,
                "tried": tried(&request.rejections),
            })
        }
        HubEvent::Delivered { client, message } => {
            let metadata = &message.metadata;
            let mut value = json!({
                "event": "delivered", "id": message.id, "client": client, "text": message.text,
                "direct": metadata.direct_routed,
            });
            if let Some(reason) = &metadata.routing_reason {
                value["reason"] = json!(reason);
            }
            value
        }
        HubEvent::Acked {
            message,
            client,
            late,
        } => json!({ "event": "acked", "id": message, "client": client, "late": late }),
        HubEvent::Rejected {
            message,
            client,
            reason,
            timed_out,
            late,
        } => json!({
            "event": "rejected", "id": message, "client": client, "reason": reason,
            "timedOut": timed_out, "late": late,
        }),
        HubEvent::Notification {
            message,
            client,
            title,
            body,
            priority,
            late,
        } => json!({
            "event": "notification", "id": message, "client": client, "title": title, "body": body,
            "priority": priority, "late": late,
        }),
        HubEvent::Unroutable {
            message,
            text,
            why,
            tried: rejections,
        } => json!({
            "event": "unroutable", "id": message, "text": text, "code": code(why),
            "message": words(why), "tried": tried(rejections),
        }),
        HubEvent::Settled {
            message,
            outcomes: all,
        } => json!({ "event": "settled", "id": message, "outcomes": outcomes(all) }),
        HubEvent::Ignored {
            message_id, why, ..
        } => json!({ "event": "ignored", "id": **message_id, "message": why.to_string() }),
        _ => return None,
    })
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

/// Says why no client takes a message, and what to do about it.
pub(crate) fn words(why: &Unroutable) -> String {
    match why {
        Unroutable::NobodyChosen => {
            "no client fits it; write NAME: in front of it to choose one, or say it in other words"
                .to_owned()
        }
        other => other.to_string(),
    }
}

fn tried(rejections: &[Rejection]) -> Value {
    let one = |it: &Rejection| json!({ "client": *it.client, "reason": *it.reason });
    rejections.iter().map(one).collect()
}

/// The outcome of a message at every receiver.
fn outcomes(outcomes: &[Settlement]) -> Value {
    let one = |it: &Settlement| at_client(&it.client, &it.outcome);
    outcomes.iter().map(one).collect()
}

fn at_client(client: &str, outcome: &Outcome) -> Value {
    let mut value = json!({ "client": client, "outcome": word(outcome) });
    if let Outcome::Rejected { reason } = outcome {
        value["reason"] = json!(**reason);
    }
    value
}

const fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Acked => "acked",
        Outcome::Notified => "notified",
        Outcome::Rejected { .. } => "rejected",
        Outcome::TimedOut => "timedOut",
        _ => "other",
    }
}

/// The outcome of a message.
pub(crate) fn ended(settled: &Settled) -> Value {
    let mut value = json!({
        "id": settled.message.as_str(),
        "taken": settled.is_taken(),
        "outcomes": outcomes(&settled.outcomes),
    });
    if let Some(why) = &settled.unroutable {
        value["unroutable"] = json!({ "code": code(why), "message": words(why) });
    }
    value
}

/// The outcome of the last messages, the newest last.
pub(crate) fn history(history: &[HistoryEntry]) -> Value {
    let one = |it: &HistoryEntry| {
        let mut value = at_client(&it.client, &it.outcome);
        value["id"] = json!(it.message.as_str());
        value["text"] = json!(*it.text);
        value["late"] = json!(it.late);
        value
    };
    history.iter().map(one).collect()
}

/// Who is connected.
pub(crate) fn clients(clients: &[RegisteredClient]) -> Value {
    let one = |it: &RegisteredClient| {
        let about = &it.registration;
        let mut value = json!({
            "name": about.name, "clientId": it.id, "description": about.description,
            "capabilities": about.capabilities,
        });
        if let Some(version) = &about.version {
            value["version"] = json!(version);
        }
        value
    };
    clients.iter().map(one).collect()
}
