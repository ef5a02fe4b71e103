//! [`variable`]: settings and secrets from the environment, or from files of a service manager.

use std::fs;
use std::path::Path;

/// The folder with a file for each secret: set by systemd for `LoadCredential=`, and in containers
/// where their secrets are mounted.
const FOLDER: &str = "CREDENTIALS_DIRECTORY";

/// Returns the environment variable of this name. If it is unset, returns the content of the file of this
/// name in the folder `CREDENTIALS_DIRECTORY`, without the end of its last line.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    let folder = || {
        std::env::var(FOLDER)
            .ok()
            .filter(|folder| !folder.is_empty())
    };
    let file = || secret(Path::new(&folder()?), name);
    std::env::var(name).ok().or_else(file)
}

fn secret(folder: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(folder.join(name)).ok()?;
    let text = text.trim_end_matches(['\r', '\n']);
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_the_text_of_its_file_without_the_end_of_the_line() {
        let folder = std::env::temp_dir().join(format!("secrets-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        for (text, expected) in [
            ("k e y\r\n", Some("k e y")),
            ("key", Some("key")),
            ("\n", None),
        ] {
            fs::write(folder.join("A_KEY"), text).unwrap();
            assert_eq!(secret(&folder, "A_KEY").as_deref(), expected, "{text:?}");
        }
        assert_eq!(secret(&folder, "ANOTHER_KEY"), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_variable_that_is_nowhere_is_none() {
        assert_eq!(variable("SWITCHBOARD_NO_SUCH_VARIABLE"), None);
    }
}
