//! What holds for all protocols, one concept per page, with examples that run.
//!
//! The pages describe behaviour: what is promised, what is not, and what to choose. The documentation of
//! the types has the details, and the guide of each protocol crate what its protocol does differently.
//! Each page ends with its promises; tests hold them all.
//!
//! | Page | Read it when you ask |
//! |---|---|
//! | [`reliability`] | what can I rely on, and what about the usual failures? |
//! | [`ordering`] | may an event overtake a reply, or one message another? |
//! | [`cancellation`] | what happens if I drop this future, or this handle? |
//! | [`reconnects`] | the connection was lost: did my call arrive, and may I repeat it? |
//! | [`backpressure`] | what if one side is slower than the other? |
//! | [`limits`] | how large may this grow, and what happens then? |
//! | [`servers`] | how do I run one, in axum too, and how does it stop? |
//! | [`security`] | who can reach this, and who can read it? |
//! | [`faults`] | what if the peer, the connection or a handler misbehaves? |
//! | [`performance`] | how fast is it, and what does it allocate? |
//! | [`scale`] | what if one machine is not enough, and what if one of several fails? |
//! | [`browser`] | how do I use a client in a page? |
//! | [`testing`] | how do I test my program without a server, and without waiting? |
//! | [`adding_a_protocol`] | how would I add a sixth protocol? |
//!
//! The examples use a minimal protocol: a server that doubles numbers. [`adding_a_protocol`] has all of
//! it, and its `Link` behaves as those inside
//! [`snek-proto`](https://docs.rs/snek-proto), [`exoclaw-proto`](https://docs.rs/exoclaw-proto),
//! [`smarthole-proto`](https://docs.rs/smarthole-proto),
//! [`connectonion-proto`](https://docs.rs/connectonion-proto) and
//! [`acolyte-proto`](https://docs.rs/acolyte-proto) do: `link.call("double", |m, now| m.double(21, now))` is
//! `client.send_message(..)` there. Where a protocol differs, the page has a table.

/// A page. Its links to what the features `server` and `testing` add are plain text without them.
macro_rules! page {
    ($name:ident, $text:literal) => {
        #[cfg_attr(
            not(all(feature = "server", feature = "testing")),
            allow(rustdoc::broken_intra_doc_links)
        )]
        #[doc = include_str!($text)]
        pub mod $name {}
    };
}

page!(reliability, "reliability.md");
page!(ordering, "ordering.md");
page!(cancellation, "cancellation.md");
page!(reconnects, "reconnects.md");
page!(backpressure, "backpressure.md");
page!(limits, "limits.md");
page!(servers, "servers.md");
page!(security, "security.md");
page!(faults, "../../FAULTS.md");
page!(performance, "performance.md");
page!(scale, "scale.md");
page!(browser, "browser.md");
page!(testing, "testing.md");
page!(adding_a_protocol, "adding_a_protocol.md");
