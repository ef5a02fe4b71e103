//! Vectors of token budgets: what is let in, and what is counted.

use std::collections::HashMap;

use exoclaw_proto::budget::{Budgets, Ledger, Reservation, estimate};
use exoclaw_proto::session::SessionKey;
use serde_json::Value;

use super::run;

const DAY: u64 = 86_400;

#[test]
fn tokens_are_counted_as_the_vectors_say() {
    run("budgets", |vector| {
        let budget = |scope: &str| vector.get("budgets").get(scope).and_then(Value::as_u64);
        let budgets = Budgets::default()
            .with_session(budget("session"))
            .with_daily(budget("daily"))
            .with_monthly(budget("monthly"));
        let mut ledger = Ledger::new(budgets);
        if let Some(most) = vector.get("max_sessions").as_u64() {
            ledger = ledger.with_max_sessions(usize::try_from(most).unwrap());
        }
        let mut runs = HashMap::new();
        for (at, step) in vector.list("steps").iter().enumerate() {
            let step = step.as_array().unwrap();
            take(
                &mut ledger,
                &mut runs,
                step,
                &format!("{} {at}", vector.name()),
            );
        }
    });
}

#[test]
fn prompts_are_estimated_from_their_size() {
    run("estimates", |vector| {
        let bytes = usize::try_from(vector.get("bytes").as_u64().unwrap()).unwrap();
        assert_eq!(Some(estimate(bytes)), vector.get("tokens").as_u64());
    });
}

fn take(ledger: &mut Ledger, runs: &mut HashMap<String, Reservation>, step: &[Value], name: &str) {
    let text = |at: usize| step[at].as_str().unwrap();
    let number = |at: usize| step[at].as_u64().unwrap();
    let key = |at: usize| SessionKey::new("default", "websocket", text(at), "main");
    match text(0) {
        "reserve" => {
            let unix = number(4) * DAY;
            match ledger.reserve(&key(2), number(3), unix) {
                Ok(run) => {
                    assert_eq!(step.len(), 5, "{name}: let in");
                    runs.insert(text(1).to_owned(), run);
                }
                Err(error) => assert_eq!(error.to_string(), text(5), "{name}"),
            }
        }
        "record" => ledger.record(runs.get_mut(text(1)).unwrap(), number(2)),
        "held" => assert_eq!(runs[text(1)].held(), number(2), "{name}"),
        "settle" => ledger.settle(runs.remove(text(1)).unwrap()),
        "used" => assert_eq!(ledger.session_used(&key(1)), number(2), "{name}"),
        "forget" => assert_eq!(ledger.forget(&key(1)), number(2), "{name}"),
        "total" => {
            let total = (ledger.daily_used(), ledger.monthly_used());
            assert_eq!(total, (number(1), number(2)), "{name}");
        }
        "day" => {
            ledger.advance(number(1) * DAY);
            assert_eq!(ledger.date().to_string(), text(2), "{name}");
        }
        "restart" => *ledger = Ledger::restore(ledger.budgets(), ledger.snapshot()),
        other => panic!("{name}: {other}"),
    }
}
