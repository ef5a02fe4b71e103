//! The parts that the chat pages of gateway and agent share: a [`Skeleton`] makes the
//! page itself, and finds its scripts and styles.

/// Files beside this one, with the paths that begin so.
macro_rules! files {
    ($start:literal $($make:ident $name:literal)*) => {
        &[$((concat!($start, $name), crate::web::Asset::$make(include_bytes!($name)))),*]
    };
}

pub mod agent;
pub mod gateway;
#[cfg(test)]
pub(crate) mod tests;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::json;

use crate::web::{Asset, answer};

const FILES: &[(&str, Asset)] = files! {
    "/page/" style "base.css" style "app.css" style "answer.css"
    script "answer.js" script "chats.js" script "composer.js" script "connection.js" script "dom.js"
    script "edit.js" script "markdown.js" script "nodes.js" script "theme.js" script "view.js"
    script "vendor/highlight.mjs" script "vendor/markdown-it.mjs" script "vendor/purify.mjs"
    script "vendor/remend.mjs"
};

/// What makes one page differ from the others. All but the names is HTML.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skeleton {
    /// Who answers.
    pub name: &'static str,
    /// What can be asked at first.
    pub examples: [&'static str; 3],
    /// The form for visitors who are not admitted yet.
    pub entry: &'static str,
    /// What is above the field for messages.
    pub extras: &'static str,
    /// What is before the field, in its row.
    pub attach: &'static str,
    /// What is below the field.
    pub choices: &'static str,
    /// Its own scripts and pictures, with their paths.
    pub files: &'static [(&'static str, Asset)],
}

impl Skeleton {
    /// Returns the page's file at this path: of its own, of all pages, or its manifest.
    pub fn file(&self, path: &str) -> Option<Response<Bytes>> {
        let mut files = self.files.iter().chain(FILES);
        match path {
            "/manifest.json" => Some(self.manifest()),
            _ => Some(files.find(|(place, _)| *place == path)?.1.respond()),
        }
    }

    /// Returns what a home screen has to know of the page: its name, and its icon.
    fn manifest(&self) -> Response<Bytes> {
        let Self { name, .. } = self;
        let manifest = json!({
            "name": name, "short_name": name, "start_url": "./", "display": "standalone",
            "background_color": "#14191b", "theme_color": "#1c666f",
            "icons": [{ "src": "icon.svg", "sizes": "any", "type": "image/svg+xml" }],
        });
        let body = manifest.to_string().into();
        answer(StatusCode::OK, "application/manifest+json", body)
    }

    /// Returns the page for this path. Its links are relative, so that it also works below a path of another
    /// server.
    pub fn page(&self, path: &str) -> Bytes {
        let root = "../".repeat(path.matches('/').count().saturating_sub(1));
        let examples = self
            .examples
            .map(|text| format!("<button type=\"button\" class=\"quiet example\">{text}</button>"));
        let page = include_str!("page.html")
            .replace("{name}", self.name)
            .replace("{examples}", &examples.concat())
            .replace("{entry}", self.entry)
            .replace("{extras}", self.extras)
            .replace("{attach}", self.attach)
            .replace("{choices}", self.choices)
            .replace("{root}", &format!("./{root}"));
        page.into()
    }
}
