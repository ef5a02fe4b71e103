//! The parts that the chat pages of gateway and agent share: [`file()`] finds their scripts and styles,
//! [`Skeleton`] makes the page itself, and a [`Renderer`] turns Markdown into HTML for them.

mod render;
#[cfg(test)]
pub(crate) mod tests;

use bytes::Bytes;

use crate::markdown::preload;
use crate::web::Asset;

pub use render::{Html, MAX_BODY, Renderer};

/// Where pages have Markdown rendered.
pub const MARKDOWN_PATH: &str = "/markdown";

const FILES: [(&str, Asset); 11] = [
    ("/page/base.css", Asset::style(include_bytes!("base.css"))),
    ("/page/app.css", Asset::style(include_bytes!("app.css"))),
    (
        "/page/answer.css",
        Asset::style(include_bytes!("answer.css")),
    ),
    (
        "/page/answer.js",
        Asset::script(include_bytes!("answer.js")),
    ),
    ("/page/chats.js", Asset::script(include_bytes!("chats.js"))),
    (
        "/page/composer.js",
        Asset::script(include_bytes!("composer.js")),
    ),
    ("/page/dom.js", Asset::script(include_bytes!("dom.js"))),
    (
        "/page/markdown.js",
        Asset::script(include_bytes!("markdown.js")),
    ),
    ("/page/nodes.js", Asset::script(include_bytes!("nodes.js"))),
    (
        "/page/socket.js",
        Asset::script(include_bytes!("socket.js")),
    ),
    ("/page/view.js", Asset::script(include_bytes!("view.js"))),
];

/// Returns the file that all pages have at this path.
#[must_use]
pub fn file(path: &str) -> Option<Asset> {
    let found = FILES.iter().find(|(place, _)| *place == path);
    found.map(|(_, asset)| *asset)
}

/// What makes one page differ from the others. All but the names is HTML.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skeleton {
    /// Who answers.
    pub name: &'static str,
    /// What an empty conversation says.
    pub hint: &'static str,
    /// The form for those who are not let in yet.
    pub entry: &'static str,
    /// What is above the field for messages.
    pub extras: &'static str,
    /// What is before the field, in its row.
    pub attach: &'static str,
    /// What is below the field.
    pub choices: &'static str,
}

impl Skeleton {
    /// Returns the page, for which highlighting is [loaded](crate::markdown::preload).
    #[must_use]
    pub fn page(&self) -> Bytes {
        preload();
        let page = include_str!("page.html")
            .replace("{name}", self.name)
            .replace("{hint}", self.hint)
            .replace("{entry}", self.entry)
            .replace("{extras}", self.extras)
            .replace("{attach}", self.attach)
            .replace("{choices}", self.choices);
        page.into()
    }
}
