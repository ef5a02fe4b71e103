//! What a program needs to work with a language model: the conversation, tools, the loop that calls
//! them, and images. Nothing in here knows Snek: other programs use it, too.

pub mod chat;
pub mod image;
pub mod tool;
pub mod toolloop;
