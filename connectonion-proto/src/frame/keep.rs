//! [`Keep`]: what becomes of the borrowed pieces of a frame that has to live longer.

use std::borrow::Cow;

use rpc_core::decode::{FrameCopy, RawJson, SharedJson, SharedStr};

use super::word::{Vocabulary, Word};

/// A way to keep the pieces of a decoded frame.
pub(super) trait Keep {
    /// A kept text.
    type Text;
    /// A kept JSON value.
    type Json;

    fn text(&self, text: &str) -> Self::Text;
    fn json(&self, json: &RawJson<'_>) -> Self::Json;

    fn texts(&self, text: &Option<Cow<'_, str>>) -> Option<Self::Text> {
        text.as_ref().map(|text| self.text(text))
    }

    fn jsons(&self, json: &Option<RawJson<'_>>) -> Option<Self::Json> {
        json.as_ref().map(|json| self.json(json))
    }

    fn word<K: Vocabulary>(&self, word: &Word<K, Cow<'_, str>>) -> Word<K, Self::Text> {
        match word {
            Word::Known(known) => Word::Known(*known),
            Word::Other(text) => Word::Other(self.text(text)),
        }
    }

    fn words<K: Vocabulary>(
        &self,
        word: &Option<Word<K, Cow<'_, str>>>,
    ) -> Option<Word<K, Self::Text>> {
        word.as_ref().map(|word| self.word(word))
    }
}

/// Each piece becomes a copy of its own.
pub(super) struct Owned;

impl Keep for Owned {
    type Text = Cow<'static, str>;
    type Json = RawJson<'static>;

    fn text(&self, text: &str) -> Self::Text {
        Cow::Owned(text.to_owned())
    }

    fn json(&self, json: &RawJson<'_>) -> Self::Json {
        json.clone().into_owned()
    }
}

/// All pieces share one copy of the frame.
impl Keep for FrameCopy<'_> {
    type Text = SharedStr;
    type Json = SharedJson;

    fn text(&self, text: &str) -> Self::Text {
        self.str(text)
    }

    fn json(&self, json: &RawJson<'_>) -> Self::Json {
        FrameCopy::json(self, json)
    }
}
