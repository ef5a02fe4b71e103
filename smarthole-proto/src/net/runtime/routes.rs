//! The task of a [`RouterRuntime`]: asks the router and handles timeouts.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::net::catch_panic;
use rpc_core::net::telemetry::server_call;
use tokio::task::JoinSet;

use super::RouterRuntime;
use super::state::Open;
use crate::limits::ROUTER_TIMEOUT;
use crate::net::SYSTEM;
use crate::router::{Router, RouterError};

/// Most questions to the router at once; further ones wait in order.
const MAX_AT_ONCE: usize = 16;

rpc_core::config! {
    /// How a [`RouterRuntime`] asks its router.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RouterOptions {
        /// How long the router may take for one decision. Default 30 s.
        pub timeout: Duration = ROUTER_TIMEOUT,
    }
}

pub(super) async fn run<R: Router>(
    runtime: RouterRuntime,
    router: Arc<R>,
    options: RouterOptions,
) -> Infallible {
    let _running = runtime.shared.running();
    // Tasks of their own, so that a router that computes blocks neither time nor clients. They go
    // when this future goes.
    let mut asked = JoinSet::new();
    loop {
        while asked.len() < MAX_AT_ONCE
            && let Some(question) = runtime.shared.peek(|state| state.questions.pop_front())
        {
            let (runtime, router) = (runtime.clone(), Arc::clone(&router));
            asked.spawn(ask(runtime, router, question, options.timeout));
        }
        tokio::select! {
            () = runtime.shared.changed() => {}
            Some(_) = asked.join_next() => {}
        }
    }
}

/// Asks the router one question and passes on its answer. A panic of the router counts as a
/// failure.
async fn ask<R: Router>(runtime: RouterRuntime, router: Arc<R>, question: Open, timeout: Duration) {
    let deciding = async { router.route(&question.request).await };
    let deciding = pin!(catch_panic("a router", deciding));
    let deciding = server_call(SYSTEM, "route", deciding, |done| {
        matches!(done, Some(Ok(_)))
    });
    let decision = match rpc_core::net::time::timeout(timeout, deciding).await {
        Ok(Some(decision)) => decision,
        Ok(None) => Err(RouterError::Failed("internal error".into())),
        Err(_) => Err(RouterError::TimedOut(timeout)),
    };
    let route = question.route;
    runtime
        .shared
        .with(|state, now| state.answer(route, decision, now));
}
