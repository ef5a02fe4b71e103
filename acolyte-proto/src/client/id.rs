//! [`CallId`]: the id of a request that this client made.

use std::fmt;

use rpc_core::IdForm;

use crate::id::{DIGITS, RpcId, is_digit};

/// The prefix of every request id.
const PREFIX: &str = "rpc_";
/// The number of digits that hold 64 bits. It is fixed, so that no id is `rpc_unknown`.
const LENGTH: usize = 13;

/// The id of a request of this client: `rpc_` and 13 digits of base 36 on the wire. Cheap to copy
/// and to look up; converts into an [`RpcId`].
pub type CallId = rpc_core::CallId<RpcForm>;

/// The form of a [`CallId`] on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RpcForm {}

impl IdForm for RpcForm {
    fn write(raw: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str(PREFIX)?;
        out.write_str(std::str::from_utf8(&digits(raw)).unwrap_or_default())
    }

    fn parse(text: &str) -> Option<u64> {
        let digits = text.strip_prefix(PREFIX)?;
        let is_exact = digits.len() == LENGTH && digits.bytes().all(is_digit);
        u64::from_str_radix(digits, 36).ok().filter(|_| is_exact)
    }
}

impl From<CallId> for RpcId {
    fn from(id: CallId) -> Self {
        Self::of_call(&id.to_string())
    }
}

fn digits(mut number: u64) -> [u8; LENGTH] {
    let mut text = [b'0'; LENGTH];
    for place in text.iter_mut().rev() {
        let digit = usize::try_from(number % 36).unwrap_or_default();
        *place = DIGITS.get(digit).copied().unwrap_or(b'0');
        number /= 36;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_only_in_its_exact_form() {
        for (raw, text) in [
            (0, "rpc_0000000000000"),
            (35, "rpc_000000000000z"),
            (u64::MAX, "rpc_3w5e11264sgsf"),
        ] {
            let id = CallId::from_raw(raw);
            assert_eq!(id.to_string(), text);
            assert_eq!(CallId::parse(text), Some(id));
        }
        for wrong in [
            "rpc_unknown",
            "rpc_000000000000Z",
            "rpc_00000000000000",
            "rpc_3w5e11264sgsg",
            "task_0000000000000",
            "rpc_",
            "",
        ] {
            assert_eq!(CallId::parse(wrong), None, "{wrong}");
        }
    }
}
