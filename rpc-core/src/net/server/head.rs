//! [`Head`]: what the head of a request must not have, and hyper takes.

/// The last bytes of a request's head, until it ends.
pub(super) struct Head(Option<[u8; 4]>);

impl Head {
    pub(super) const fn new() -> Self {
        Self(Some([0; 4]))
    }

    /// Replaces each line feed without a carriage return before it in the next bytes of the request.
    pub(super) fn spoil_bare_lf<'a>(&mut self, bytes: impl Iterator<Item = &'a mut u8>) {
        for byte in bytes {
            let Some(last) = &mut self.0 else { break };
            last.rotate_left(1);
            if *byte == b'\n' && last[2] != b'\r' {
                // Other servers end the line elsewhere. Hyper does not, but answers this with 400.
                *byte = 0;
            }
            last[3] = *byte;
            self.0.take_if(|last| last == b"\r\n\r\n");
        }
    }
}
