//! Vectors of token budgets: what is admitted, and what is counted.

use std::collections::HashMap;

use exoclaw_proto::budget::{Budgets, Ledger, Reservation, estimate};
use exoclaw_proto::session::SessionKey;
use serde_json::Value;

use super::run;

const DAY: u64 = 86_400;

#[test]
fn budgets_match_the_vectors() {
    run("budgets", |vector| {
        let budget = |scope: &str| vector.get("budgets").get(scope).and_then(Value::as_u64);
        let budgets = Budgets {
            session: budget("session"),
            daily: budget("daily"),
            monthly: budget("monthly"),
        };
        let stored = |of: &str| vector.get(of).as_object().cloned().unwrap_or_default();
        let days = stored("days").into_iter();
        let sessions = stored("sessions").into_iter();
        let ledger = Ledger::restore(
            budgets,
            days.map(|(day, tokens)| (day.parse().unwrap(), tokens.as_u64().unwrap())),
            sessions.map(|(name, tokens)| (key(&name), tokens.as_u64().unwrap())),
            0,
        );
        let mut runs = HashMap::new();
        for (at, step) in vector.list("steps").iter().enumerate() {
            let step = step.as_array().unwrap();
            take(&ledger, &mut runs, step, &format!("{} {at}", vector.name()));
        }
    });
}

#[test]
fn prompt_estimates_match_the_vectors() {
    run("estimates", |vector| {
        let bytes = usize::try_from(vector.get("bytes").as_u64().unwrap()).unwrap();
        assert_eq!(Some(estimate(bytes)), vector.get("tokens").as_u64());
    });
}

fn key(account: &str) -> SessionKey {
    SessionKey::new("default", "websocket", account, "main")
}

fn take(ledger: &Ledger, runs: &mut HashMap<String, Reservation>, step: &[Value], name: &str) {
    let text = |at: usize| step[at].as_str().unwrap();
    let number = |at: usize| step[at].as_u64().unwrap();
    match text(0) {
        "reserve" => match ledger.reserve(&key(text(2)), number(3), number(4) * DAY) {
            Ok(run) => {
                assert_eq!(step.len(), 5, "{name}: let in");
                runs.insert(text(1).to_owned(), run);
            }
            Err(error) => assert_eq!(error.to_string(), text(5), "{name}"),
        },
        "record" => runs.get_mut(text(1)).unwrap().record(number(2)),
        "settle" => drop(runs.remove(text(1)).unwrap()),
        "used" => {
            let session = ledger.status(Some(&key(text(1))), 0).session.unwrap();
            assert_eq!(session.used, number(2), "{name}");
        }
        "total" => {
            let status = ledger.status(None, 0);
            let total = (status.daily.used, status.monthly.used);
            assert_eq!(total, (number(1), number(2)), "{name}");
        }
        "day" => drop(ledger.status(None, number(1) * DAY)),
        other => panic!("{name}: {other}"),
    }
}
