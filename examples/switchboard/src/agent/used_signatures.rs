//! [`SpentFile`]: the used signatures of a host, so that none counts once more after a restart.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use connectonion_proto::auth::Spent;
use connectonion_proto::limits::SIGNATURE_WINDOW;
use rpc_core::file;

const FOLDER: &str = "used-signatures";

/// A folder with a file for each stretch of time in which signatures end, so that several hosts with
/// one folder can add to a file, and files only have to be removed.
#[derive(Clone, Debug)]
pub struct SpentFile {
    folder: PathBuf,
}

impl SpentFile {
    /// Opens those of this home, and returns what can still count.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(home: &Path) -> io::Result<(Self, Vec<Spent>)> {
        let folder = home.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let number = path
                .file_name()
                .and_then(|it| it.to_str()?.parse::<u64>().ok());
            match number {
                Some(number) if number < stretch(now) => fs::remove_file(path)?,
                // A line that was cut short was not carried out.
                Some(_) => found.extend(
                    String::from_utf8_lossy(&fs::read(path)?)
                        .lines()
                        .filter_map(Spent::parse)
                        .filter(|spent| spent.end >= now),
                ),
                None => {}
            }
        }
        Ok((Self { folder }, found))
    }

    /// Adds used ones, and forgets those that can count no more.
    ///
    /// # Errors
    /// The system's error; some may be kept.
    pub fn keep(&self, spent: &[Spent]) -> io::Result<()> {
        for spent in spent {
            let number = stretch(spent.end);
            let path = self.folder.join(number.to_string());
            let is_new = !path.exists();
            file::append_lines(&file::open(&path)?, &format!("{spent}\n"))?;
            // Signatures end up to two windows from now.
            if is_new && let Some(old) = number.checked_sub(4) {
                let _ = fs::remove_file(self.folder.join(old.to_string()));
            }
        }
        Ok(())
    }
}

/// The number of the stretch of time of this second.
const fn stretch(second: u64) -> u64 {
    second / SIGNATURE_WINDOW.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;

    #[test]
    fn used_signatures_survive_a_restart_until_they_expire() {
        let home = Folder::new();
        let (spent, found) = SpentFile::open(&home).unwrap();
        assert_eq!(found, []);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let line = |end: u64| {
            let line = format!("Admin {end} 0x{} {}", "01".repeat(32), "02".repeat(64));
            Spent::parse(&line).unwrap()
        };
        let valid = [line(now + 300), line(now + 600)];
        spent.keep(&valid).unwrap();
        spent.keep(&[line(now - 1), line(now - 900)]).unwrap();
        // A line that was cut short does not hide others.
        let path = home.join(FOLDER).join(stretch(now + 300).to_string());
        file::append_lines(&file::open(&path).unwrap(), "Admin 17").unwrap();
        spent.keep(&valid[..1]).unwrap();
        let (_, mut found) = SpentFile::open(&home).unwrap();
        found.sort_by_key(|it| it.end);
        assert_eq!(found, [valid[0], valid[0], valid[1]]);
        assert!(
            !home
                .join(FOLDER)
                .join(stretch(now - 900).to_string())
                .exists()
        );
    }
}
