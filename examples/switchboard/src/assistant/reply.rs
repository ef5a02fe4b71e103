//! An answer in a channel: a typing indicator, and a streamed text.

use std::convert::Infallible;

use futures_util::{StreamExt as _, stream};
use snek_proto::bot::{Context, PumpError};
use snek_proto::error::BotError;
use snek_proto::frame::Message;
use tokio::sync::mpsc;

use super::{AnswerError, Assistant, Question};
use crate::assistant::pictures::{self, Pictures};

/// Pieces that may wait while the writer is busy.
const PIECES: usize = 64;

impl Assistant {
    /// Answers a message in its channel, with the images that it names.
    ///
    /// # Errors
    /// The outer one if the answer could not be posted. The inner one, for a log, if the assistant
    /// failed; the channel got a friendly line instead.
    ///
    /// # Cancel safety
    /// Dropping the future ends the answer with the text so far.
    pub async fn reply(
        &self,
        cx: &Context,
        message: &Message,
        pictures: Option<&dyn Pictures>,
    ) -> Result<Result<(), AnswerError>, BotError> {
        let (sender, mut receiver) = mpsc::channel(PIECES);
        let think = async move {
            let _typing = cx.typing();
            let images = match pictures {
                Some(pictures) => pictures::of_text(pictures, &message.message).await,
                None => Vec::new(),
            };
            let question = Question {
                channel: cx.channel().as_str().to_owned(),
                nick: message.user_nick.as_str().to_owned(),
                text: message.message.as_str().to_owned(),
                images,
            };
            self.answer(question, &sender).await
        };
        let pieces = stream::poll_fn(move |task| receiver.poll_recv(task)).map(Ok::<_, Infallible>);
        let (thought, posted) = tokio::join!(think, cx.stream().pump(pieces));
        match posted {
            Ok(_) => Ok(thought),
            Err(PumpError::Send { error, .. }) => Err(error),
            Err(PumpError::Producer { error, .. }) => match error {},
        }
    }
}
