//! [`Head`]: what the head of a request must not have, and hyper takes.

/// The header that must not stand twice: hyper leaves out the second, and other servers may not.
const LENGTH: &[u8] = b"content-length:";

/// The head of a request, until it ends.
pub(super) struct Head {
    /// Its last bytes; `None` behind its end.
    last: Option<[u8; 4]>,
    /// How much of [`LENGTH`] the line begins with; `None` if it is another one.
    length: Option<usize>,
    has_length: bool,
}

impl Head {
    pub(super) const fn new() -> Self {
        Self {
            last: Some([0; 4]),
            length: Some(0),
            has_length: false,
        }
    }

    /// Replaces, in the next bytes of the request, each line feed without a carriage return before it and the colon
    /// of a second `Content-Length`: hyper answers them with 400.
    pub(super) fn spoil<'a>(&mut self, bytes: impl Iterator<Item = &'a mut u8>) {
        for byte in bytes {
            let Some(last) = &mut self.last else { break };
            last.rotate_left(1);
            if *byte == b'\n' && last[2] != b'\r' {
                // Other servers end the line elsewhere.
                *byte = 0;
            }
            let is_next = |at: usize| LENGTH.get(at) == Some(&byte.to_ascii_lowercase());
            self.length = self.length.filter(|at| is_next(*at)).map(|at| at + 1);
            if self.length == Some(LENGTH.len()) && std::mem::replace(&mut self.has_length, true) {
                *byte = 0;
            }
            if *byte == b'\n' {
                self.length = Some(0);
            }
            last[3] = *byte;
            self.last.take_if(|last| last == b"\r\n\r\n");
        }
    }
}
