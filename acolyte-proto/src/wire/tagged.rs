//! [`tagged`]: an object whose members depend on one of them.

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, Field, Members, Reader, Slot};

use super::again;

/// What an object holds beside its tag.
pub(crate) trait Body<'a>: Sized {
    /// The name of the member that is the tag.
    const TAG: &'static str;
    /// Whether there is also an `id`, whatever the tag.
    const HAS_ID: bool = false;

    /// No members yet of an object with this tag.
    fn of(tag: &str) -> Self;

    /// Takes a member, as [`Members`] does.
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError>;
}

/// An object that was read.
pub(crate) struct Tagged<'a, B> {
    pub(crate) id: Slot<Cow<'a, str>>,
    pub(crate) tag: Cow<'a, str>,
    pub(crate) body: B,
}

struct Pass<'a, B> {
    id: Slot<Cow<'a, str>>,
    tag: Slot<Cow<'a, str>>,
    body: Option<B>,
    /// The tag is known from a pass before.
    is_second: bool,
    /// A member came before the tag, or was read by another tag.
    is_wrong: bool,
}

impl<'a, B: Body<'a>> Members<'a> for Pass<'a, B> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        if name == B::TAG {
            if self.is_second {
                return field.skip();
            }
            self.is_wrong |= self.body.is_some();
            field.str(B::TAG, again(&mut self.tag))?;
            self.body = self.tag.get().map(|tag| B::of(tag));
            return Ok(());
        }
        if B::HAS_ID && name == "id" {
            return field.str("id", again(&mut self.id));
        }
        if let Some(body) = &mut self.body {
            return body.member(name, field);
        }
        self.is_wrong = true;
        field.skip()
    }
}

/// Reads an object. As a rule its tag comes first and one pass is enough.
pub(crate) fn tagged<'a, B: Body<'a>>(
    reader: &mut Reader<'a>,
) -> Result<Tagged<'a, B>, DecodeError> {
    let mut start = reader.clone();
    let mut pass = Pass {
        id: Slot::default(),
        tag: Slot::default(),
        body: None,
        is_second: false,
        is_wrong: false,
    };
    reader.object_into(&mut pass)?;
    let tag = pass.tag.require(B::TAG)?;
    if pass.is_wrong {
        pass = Pass {
            id: Slot::default(),
            tag: Slot::default(),
            body: Some(B::of(&tag)),
            is_second: true,
            is_wrong: false,
        };
        start.object_into(&mut pass)?;
    }
    let body = pass.body.unwrap_or_else(|| B::of(&tag));
    Ok(Tagged {
        id: pass.id,
        tag,
        body,
    })
}
