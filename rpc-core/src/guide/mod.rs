//! What holds for all protocols, one concept per page, with examples that run.
//!
//! The pages read in this order. Each has its promises, and tests hold them all. The guide of each protocol crate has
//! what its protocol adds.
//!
//! | Page | Read it when you ask |
//! |---|---|
//! | [`reliability`] | what can I rely on, and what about the usual failures? |
//! | [`reconnects`] | the connection was lost: did my call arrive, and may I repeat it? |
//! | [`ordering`] | may an event overtake a reply, or one message another? |
//! | [`cancellation`] | what happens if I drop this future, or this handle? |
//! | [`backpressure`] | what if one side is slower than the other? |
//! | [`limits`] | how large may this grow, and what happens then? |
//! | [`servers`] | how do I run one, in axum too, and how does it stop? |
//! | [`security`] | who can reach this, and who can read it? |
//! | [`faults`] | what if the peer, the connection or a handler misbehaves? |
//! | [`testing`] | how do I test my program without a server, and without waiting? |
//! | [`browser`] | how do I use a client in a page? |
//! | [`performance`] | what does it cost? |
//! | [`scale`] | what if one machine is not enough, and what if one of several fails? |
//! | [`adding_a_protocol`] | how would I add a sixth protocol? |
//!
//! The examples use a minimal protocol: a server that doubles numbers. [`adding_a_protocol`] has all of it. Its `Link`
//! behaves as those inside the protocol crates do: `link.call_with("double", |m, now| m.double(21, now))` is
//! `client.send_message(..)` there. Where a protocol differs, the page has a table.

/// A page, and the one to read next. Its links to what the features `server` and `testing` add are plain text without
/// them.
macro_rules! page {
    ($name:ident, $text:literal $(, $next:ident)?) => {
        #[cfg_attr(not(all(feature = "server", feature = "testing")), allow(rustdoc::broken_intra_doc_links))]
        #[doc = include_str!($text)]
        $(#[doc = concat!("\n\nNext: [`", stringify!($next), "`](crate::guide::", stringify!($next), ").")])?
        pub mod $name {}
    };
}

page!(reliability, "reliability.md", reconnects);
page!(reconnects, "reconnects.md", ordering);
page!(ordering, "ordering.md", cancellation);
page!(cancellation, "cancellation.md", backpressure);
page!(backpressure, "backpressure.md", limits);
page!(limits, "limits.md", servers);
page!(servers, "servers.md", security);
page!(security, "security.md", faults);
page!(faults, "../../FAULTS.md", testing);
page!(testing, "testing.md", browser);
page!(browser, "browser.md", performance);
page!(performance, "performance.md", scale);
page!(scale, "scale.md", adding_a_protocol);
page!(adding_a_protocol, "adding_a_protocol.md");
