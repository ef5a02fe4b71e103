//! [`Soul`]: the character of the agent, from a file that can change while the gateway runs.

use rpc_core::sync::Mutex;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest soul, in bytes. The rest of a larger file is ignored.
pub const MAX_SOUL: usize = 64 * 1024;

/// A soul as it was last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoulText {
    /// The text, if the file was ever readable. Without control characters, except line ends and
    /// tabs.
    pub text: Option<Arc<str>>,
    /// A problem of the file. Reported once for each kind of problem, not at every reading.
    pub warning: Option<String>,
}

/// The file of a soul. Clones share the text.
#[derive(Clone, Debug)]
pub struct Soul(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    last: Mutex<SoulText>,
}

impl Soul {
    /// Creates the soul of a file, without reading it yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Inner {
            path: path.into(),
            last: Mutex::default(),
        }))
    }

    /// [Reads](Self::read) the file without blocking an async worker.
    ///
    /// # Cancel safety
    /// Dropping the future loses the text, and a warning that it would have reported.
    pub async fn load(&self) -> SoulText {
        let soul = self.clone();
        let read = tokio::task::spawn_blocking(move || soul.read());
        read.await.unwrap_or_default()
    }

    /// Reads the file, which is small, so that every message gets its latest version. If it cannot
    /// be read, keeps the previous text. Blocks on the file system.
    pub fn read(&self) -> SoulText {
        let outcome = content(&self.0.path);
        let mut last = self.0.last.lock();
        let trouble = match outcome {
            Ok((text, whole)) => {
                if last.text.as_deref() != Some(text.as_str()) {
                    last.text = Some(text.into());
                }
                (!whole).then(|| format!("is larger than {MAX_SOUL} bytes, the rest is left out"))
            }
            Err(error) => Some(format!("cannot be read: {error}")),
        };
        let warning = trouble.map(|trouble| format!("{} {trouble}", self.0.path.display()));
        let mut now = last.clone();
        now.warning = warning.clone().filter(|_| warning != last.warning);
        last.warning = warning;
        now
    }
}

/// Returns the text of a file, and whether it is the whole text.
fn content(path: &Path) -> io::Result<(String, bool)> {
    // Asked before opening, since opening a pipe would wait for its other end.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    let most = MAX_SOUL as u64 + 1;
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    let whole = bytes.len() <= MAX_SOUL;
    bytes.truncate(MAX_SOUL);
    let text = String::from_utf8_lossy(&bytes);
    // A character that the cut went through is not a character of the text.
    let text = if whole {
        &text
    } else {
        text.trim_end_matches(char::REPLACEMENT_CHARACTER)
    };
    let harmless = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    Ok((text.chars().filter(harmless).collect(), whole))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::scratch::Folder;

    #[test]
    fn a_changed_file_is_read_again() {
        let folder = Folder::new();
        let path = folder.path().join("soul.md");
        let soul = Soul::new(&path);
        fs::write(&path, "kind").unwrap();
        assert_eq!(soul.read().text.as_deref(), Some("kind"));
        fs::write(&path, "grim").unwrap();
        assert_eq!(soul.read().text.as_deref(), Some("grim"));
    }

    #[tokio::test]
    async fn clones_share_what_was_read() {
        let folder = Folder::new();
        let path = folder.path().join("soul.md");
        fs::write(&path, "kind").unwrap();
        let soul = Soul::new(&path);
        let twin = soul.clone();
        assert_eq!(soul.load().await.text.as_deref(), Some("kind"));
        fs::remove_file(&path).unwrap();
        let gone = twin.load().await;
        assert_eq!(gone.text.as_deref(), Some("kind"));
        assert!(gone.warning.is_some());
        assert_eq!(soul.load().await.warning, None);
    }

    #[test]
    fn a_removed_file_keeps_its_last_text_and_causes_one_warning() {
        let folder = Folder::new();
        let path = folder.path().join("soul.md");
        fs::write(&path, "kind").unwrap();
        let soul = Soul::new(&path);
        assert_eq!(soul.read().warning, None);
        fs::remove_file(&path).unwrap();
        let gone = soul.read();
        assert_eq!(gone.text.as_deref(), Some("kind"));
        assert!(gone.warning.unwrap().contains("soul.md cannot be read: "));
        assert_eq!(soul.read().warning, None);
        fs::write(&path, "back").unwrap();
        let expected = SoulText {
            text: Some("back".into()),
            warning: None,
        };
        assert_eq!(soul.read(), expected);
        fs::remove_file(&path).unwrap();
        assert!(soul.read().warning.is_some());
    }

    #[test]
    fn reports_a_missing_file_and_a_folder() {
        let folder = Folder::new();
        let missing = Soul::new(folder.path().join("none")).read();
        assert!(missing.text.is_none() && missing.warning.is_some());
        let warning = Soul::new(folder.path()).read().warning.unwrap();
        assert!(
            warning.ends_with("cannot be read: it is not a file"),
            "{warning}"
        );
    }

    #[test]
    fn a_large_file_is_cut_between_characters() {
        let folder = Folder::new();
        let path = folder.path().join("soul.md");
        fs::write(&path, format!("x{}", "é".repeat(MAX_SOUL))).unwrap();
        let soul = Soul::new(&path).read();
        let text = soul.text.unwrap();
        assert_eq!(text.len(), MAX_SOUL - 1);
        assert!(text.ends_with('é'));
        assert!(soul.warning.unwrap().contains("larger than 65536 bytes"));
    }

    #[test]
    fn control_characters_are_omitted() {
        let folder = Folder::new();
        let path = folder.path().join("soul.md");
        fs::write(&path, b"a\r\nb\tc\x1b[0m\0\xff").unwrap();
        let text = Soul::new(&path).read().text.unwrap();
        assert_eq!(&*text, "a\nb\tc[0m\u{fffd}");
    }
}
