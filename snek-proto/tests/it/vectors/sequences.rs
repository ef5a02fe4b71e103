//! Vectors of what happens over time without a connection: the lifecycle, the circuit breaker,
//! reconnects.

use std::collections::HashMap;
use std::time::Duration;

use rpc_core::backoff::BackoffPolicy;
use rpc_core::breaker::{self, BreakerConfig, CircuitBreaker};
use rpc_core::reconnect::{ReconnectPolicy, Reconnector};
use rpc_core::{Instant, Retry};
use snek_proto::bot::State;
use snek_proto::client::reconnect_policy;

use super::{Vector, run};

fn state(name: &str) -> State {
    let found = State::ALL
        .into_iter()
        .find(|state| state.to_string() == name);
    found.unwrap_or_else(|| panic!("no state {name}"))
}

#[test]
fn states_match_the_vectors() {
    run("lifecycle", |vector| {
        let (from, to) = (state(vector.str("from")), state(vector.str("to")));
        let legal = vector.is("legal");
        assert_eq!(from.may_become(to), legal, "{}", vector.name());
    });
}

#[test]
fn the_circuit_breaker_matches_the_vectors() {
    run("breaker", |vector| {
        let number = |member: &str, default: u64| {
            let found = vector.get("config").get(member);
            found.map_or(default, |value| value.as_u64().unwrap())
        };
        let threshold = number("failure_threshold", 5);
        let trials = number("half_open_max_calls", 3);
        let recovery = number("recovery_timeout", 60);
        let config = BreakerConfig {
            failure_threshold: u32::try_from(threshold).unwrap(),
            half_open_max_calls: u32::try_from(trials).unwrap(),
            recovery_timeout: Duration::from_secs(recovery),
        };
        trace(CircuitBreaker::new(config), vector);
    });
}

fn trace(mut breaker: CircuitBreaker, vector: &Vector) {
    let start = Instant::now();
    let mut permits = HashMap::new();
    for step in vector.strs("steps") {
        let place = format!("{}: {step}", vector.name());
        let words: Vec<_> = step.split(' ').collect();
        let now = start + Duration::from_secs_f64(words[0].parse().unwrap());
        let mut permit = || permits.remove(words[2]).unwrap();
        match words[1] {
            "call" => {
                assert!(breaker.admits(now), "{place}");
                let permit = breaker.try_acquire(now);
                permits.insert(words[2], permit.unwrap_or_else(|_| panic!("{place}")));
            }
            "refused" => {
                assert!(!breaker.admits(now), "{place}");
                assert!(breaker.try_acquire(now).is_err(), "{place}");
            }
            "ok" => breaker.success(permit(), now),
            "fail" => breaker.failure(permit(), now),
            "cancel" => breaker.cancel(permit()),
            "is" => {
                let state = match breaker.state() {
                    breaker::State::Closed => "closed",
                    breaker::State::Open => "open",
                    breaker::State::HalfOpen => "half-open",
                };
                assert_eq!(state, words[2], "{place}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn breaker_limits_match_the_specification() {
    let config = BreakerConfig {
        failure_threshold: 5,
        half_open_max_calls: 3,
        recovery_timeout: Duration::from_secs(60),
    };
    assert_eq!(config, BreakerConfig::default());
}

fn policy(vector: &Vector) -> ReconnectPolicy {
    let config = vector.get("config");
    let number = |member: &str| config.get(member).map(|value| value.as_u64().unwrap());
    let mut policy = reconnect_policy();
    let mut backoff: BackoffPolicy = policy.backoff;
    if let Some(factor) = config.get("factor") {
        backoff.factor = factor.as_f64().unwrap();
    }
    if let Some(initial) = number("initial") {
        backoff.initial = Duration::from_secs(initial);
    }
    if let Some(max) = number("max") {
        backoff.max = Some(Duration::from_secs(max));
    }
    if let Some(attempts) = number("attempts") {
        backoff.max_attempts = Some(u32::try_from(attempts).unwrap());
    }
    if let Some(cycles) = number("cycles") {
        policy.cycles = Some(u32::try_from(cycles).unwrap());
    }
    policy.backoff = backoff;
    policy
}

#[test]
fn reconnect_times_match_the_vectors() {
    run("reconnect", |vector| {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(policy(vector));
        for (index, step) in vector.strs("steps").into_iter().enumerate() {
            let place = format!("{}: step {index}, {step}", vector.name());
            let words: Vec<_> = step.split(' ').collect();
            let (retry, expected) = match words[0] {
                "first" => {
                    reconnector.reset();
                    continue;
                }
                "open" => {
                    reconnector.on_open();
                    continue;
                }
                "ready" => {
                    reconnector.on_ready();
                    continue;
                }
                "lost" => (Retry::Backoff, &words[1..]),
                "never" => (Retry::Never, &words[1..]),
                "after" => {
                    let wish = Duration::from_secs(words[1].parse().unwrap());
                    (Retry::After(wish), &words[2..])
                }
                other => panic!("{other}"),
            };
            let dial = reconnector.on_lost(retry, now, 0x5eed);
            let found = match dial {
                Some(dial) => {
                    let wait = (dial.at - now).as_secs_f64();
                    let new = if dial.starts_new_cycle() { " new" } else { "" };
                    format!("{wait} {} {}{new}", dial.attempt, dial.cycle)
                }
                None => "gives up".to_owned(),
            };
            assert_eq!(found, expected.join(" "), "{place}");
        }
    });
}
