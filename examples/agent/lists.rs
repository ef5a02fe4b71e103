//! [`Lists`]: who is known to a host, in files as the known hosts keep them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use connectonion_proto::auth::Address;
use connectonion_proto::auth::AddressList;
use connectonion_proto::trust::TrustBook;
use examples::cli::{Failure, complain};

const CONTACTS: &str = "contacts.txt";
const WHITELIST: &str = "whitelist.txt";
const BLOCKLIST: &str = "blocklist.txt";
const ADMINS: &str = "admins.txt";

/// A folder with one file for each list.
#[derive(Debug)]
pub(crate) struct Lists {
    folder: PathBuf,
    /// What is in the files now.
    written: Mutex<TrustBook>,
}

impl Lists {
    /// The lists of this folder, as far as they are there.
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        let read = |name: &str| -> Result<AddressList, Failure> {
            let path = folder.join(name);
            let text = match fs::read_to_string(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
                read => {
                    read.map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))?
                }
            };
            let list = AddressList::parse(&text);
            for (line, text) in list.unknown_lines() {
                complain(format_args!(
                    "warning: {}, line {line}: ignored {text:?}, which is not an address",
                    path.display()
                ));
            }
            Ok(list)
        };
        let mut book = TrustBook::default();
        book.contacts = read(CONTACTS)?;
        book.whitelist = read(WHITELIST)?;
        book.blocked = read(BLOCKLIST)?;
        book.admins = read(ADMINS)?;
        Ok(Self {
            folder: folder.to_owned(),
            written: Mutex::new(book),
        })
    }

    /// The lists, with those who are let in this time.
    pub(crate) fn book(&self, allowed: &[Address]) -> Result<TrustBook, Failure> {
        let mut book = self.lock().clone();
        for address in allowed {
            book.whitelist.insert(*address).map_err(Failure::new)?;
        }
        Ok(book)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TrustBook> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what has changed.
    pub(crate) fn keep(&self, book: &TrustBook) {
        let mut written = self.lock();
        for (name, old, new) in [
            (CONTACTS, &written.contacts, &book.contacts),
            (WHITELIST, &written.whitelist, &book.whitelist),
            (BLOCKLIST, &written.blocked, &book.blocked),
            (ADMINS, &written.admins, &book.admins),
        ] {
            let text = new.to_string();
            if text != old.to_string()
                && let Err(error) = self.write(name, &text)
            {
                complain(format_args!(
                    "warning: cannot write {name}: {error}; changes to it last until the host ends"
                ));
            }
        }
        written.clone_from(book);
    }

    /// Through another file, so that a crash leaves the old one or the new one.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let draft = self.folder.join(format!("{name}.new"));
        fs::write(&draft, text)?;
        fs::rename(draft, self.folder.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_let_in_is_let_in_again() {
        let folder = std::env::temp_dir().join(format!("agent-lists-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let (ann, bo) = (Address::from_bytes([1; 32]), Address::from_bytes([2; 32]));
        let lists = Lists::open(&folder).unwrap();
        let mut book = lists.book(&[bo]).unwrap();
        assert!(book.whitelist.contains(&bo));
        book.promote(&ann).unwrap();
        lists.keep(&book);
        let book = Lists::open(&folder).unwrap().book(&[]).unwrap();
        assert!(book.contacts.contains(&ann) && !book.contacts.contains(&bo));
        assert!(!folder.join(BLOCKLIST).exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
