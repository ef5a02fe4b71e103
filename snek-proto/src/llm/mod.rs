//! Building blocks for programs with a language model: the conversation, tools, the loop that calls
//! them, and images. Independent of Snek.

pub mod chat;
pub mod image;
pub mod tool;
pub mod toolloop;
