//! [`Lists`]: who is known to a host, in files as the known hosts keep them, which people change too.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::bounded;
use crate::cli::{Failure, complain};
use connectonion_proto::auth::{Address, AddressList};
use connectonion_proto::trust::TrustBook;
use rpc_core::file::{self, Lock};
use rpc_core::sync::Mutex;

const FILES: [&str; 4] = [
    "contacts.txt",
    "whitelist.txt",
    "blocklist.txt",
    "admins.txt",
];
/// The most bytes of a list.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// How long to wait for another host that writes the lists of the same folder.
const PATIENCE: Duration = Duration::from_secs(5);

/// A folder with one file for each list.
#[derive(Debug)]
pub struct Lists {
    folder: PathBuf,
    /// Who is admitted this time, whatever the files say.
    allowed: Vec<Address>,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// What was in the files when they were read or written last.
    files: TrustBook,
    /// What the host goes by.
    book: TrustBook,
    /// When the files were changed before they were read last, and their lengths.
    stamps: Stamps,
}

type Stamps = [Option<(SystemTime, u64)>; 4];

impl Lists {
    /// Reads the lists of this folder, as far as they are there; these addresses are admitted this time.
    ///
    /// # Errors
    /// A file that cannot be read, or too many addresses.
    pub fn open(folder: &Path, allowed: &[Address]) -> Result<Self, Failure> {
        let stamps = stamps(folder);
        let files = read_all(folder).map_err(Failure::new)?;
        let mut book = files.clone();
        for address in allowed {
            book.whitelist.insert(*address).map_err(Failure::new)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            allowed: allowed.to_vec(),
            known: Mutex::new(Known {
                files,
                book,
                stamps,
            }),
        })
    }

    /// Returns what the host begins with.
    pub fn book(&self) -> TrustBook {
        self.known.lock().book.clone()
    }

    /// Returns the lists if the files have changed since they were read last.
    pub fn changed(&self) -> Option<TrustBook> {
        let mut known = self.known.lock();
        let stamps = stamps(&self.folder);
        if stamps == known.stamps {
            return None;
        }
        known.stamps = stamps;
        let files = read_all(&self.folder)
            .inspect_err(|error| {
                complain(format_args!(
                    "warning: {error}; the lists stay as they were"
                ));
            })
            .ok()?;
        let mut book = files.clone();
        // With what is in no file: those of --allow, and what could not be written.
        for (list, (before, now)) in all_mut(&mut book).into_iter().zip(known.pairs()) {
            Change::between(before, now).apply(list);
        }
        known.files = files;
        known.book.clone_from(&book);
        Some(book)
    }

    /// Writes what the host has changed.
    pub fn keep(&self, book: &TrustBook) {
        let mut known = self.known.lock();
        known.book.clone_from(book);
        let Known { files, book, .. } = &mut *known;
        let lists = all_mut(files).into_iter().zip(all_mut(book)).zip(FILES);
        for ((written, list), name) in lists {
            let mut change = Change::between(written, list);
            change
                .added
                .retain(|address| !self.allowed.contains(address));
            if change.added.is_empty() && change.removed.is_empty() {
                continue;
            }
            match self.write(name, &change) {
                Ok(now) => {
                    // Leaves what someone else has changed meanwhile.
                    Change::between(written, &now).apply(list);
                    *written = now;
                }
                Err(error) => complain(format_args!(
                    "warning: cannot write {name}: {error}; changes to it last until the host ends"
                )),
            }
        }
    }

    /// Changes the file as it is now: what was added by hand stays.
    fn write(&self, name: &str, change: &Change) -> io::Result<AddressList> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(name);
        let _lock = Lock::wait(&self.folder.join("lists"), PATIENCE).map_err(io::Error::other)?;
        let mut list = AddressList::parse(&read(&path)?);
        change.apply(&mut list);
        let text = list.to_string();
        let write = |mut new: &File| new.write_all(text.as_bytes());
        file::replace(&path, write, |error| error)?;
        Ok(list)
    }
}

impl Known {
    fn pairs(&self) -> impl Iterator<Item = (&AddressList, &AddressList)> {
        all(&self.files).into_iter().zip(all(&self.book))
    }
}

/// What is different in a list.
struct Change {
    added: Vec<Address>,
    removed: Vec<Address>,
}

impl Change {
    fn between(before: &AddressList, now: &AddressList) -> Self {
        let missing = |from: &AddressList, list: &AddressList| {
            let known: HashSet<_> = list.addresses().collect();
            let from = from.addresses();
            from.filter(|it| !known.contains(it)).copied().collect()
        };
        Self {
            added: missing(now, before),
            removed: missing(before, now),
        }
    }

    fn apply(&self, list: &mut AddressList) {
        for address in &self.removed {
            list.remove(address);
        }
        for address in &self.added {
            // Full only if someone has filled it by hand.
            if list.insert(*address).is_err() {
                complain(format_args!(
                    "warning: a list is full: {address} is not in it"
                ));
            }
        }
    }
}

/// The lists of a book, in the order of [`FILES`].
fn all(book: &TrustBook) -> [&AddressList; 4] {
    [&book.contacts, &book.whitelist, &book.blocked, &book.admins]
}

fn all_mut(book: &mut TrustBook) -> [&mut AddressList; 4] {
    let TrustBook {
        contacts,
        whitelist,
        blocked,
        admins,
        ..
    } = book;
    [contacts, whitelist, blocked, admins]
}

fn stamps(folder: &Path) -> Stamps {
    FILES.map(|name| {
        let found = fs::metadata(folder.join(name)).ok()?;
        Some((found.modified().ok()?, found.len()))
    })
}

fn read_all(folder: &Path) -> Result<TrustBook, String> {
    let mut book = TrustBook::default();
    for (list, name) in all_mut(&mut book).into_iter().zip(FILES) {
        let path = folder.join(name);
        let text = read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        *list = AddressList::parse(&text);
        for (line, text) in list.unknown_lines() {
            complain(format_args!(
                "warning: {}, line {line}: ignored {text:?}, which is not an address",
                path.display()
            ));
        }
    }
    Ok(book)
}

fn read(path: &Path) -> io::Result<String> {
    match bounded::text(path, MAX_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;

    const ANN: Address = Address::from_bytes([1; 32]);
    const BO: Address = Address::from_bytes([2; 32]);
    const CY: Address = Address::from_bytes([3; 32]);

    #[test]
    fn admitted_addresses_are_admitted_again() {
        let folder = Folder::new();
        let lists = Lists::open(&folder, &[BO]).unwrap();
        let mut book = lists.book();
        assert!(book.whitelist.contains(&BO));
        book.contacts.insert(ANN).unwrap();
        book.whitelist.insert(CY).unwrap();
        lists.keep(&book);
        let book = Lists::open(&folder, &[]).unwrap().book();
        assert!(book.contacts.contains(&ANN) && !book.contacts.contains(&BO));
        assert!(book.whitelist.contains(&CY));
        assert!(!book.whitelist.contains(&BO), "only for that time");
        assert!(!folder.join("blocklist.txt").exists());
    }

    #[test]
    fn entries_written_by_hand_count_and_stay() {
        let folder = Folder::new();
        let file = folder.join("blocklist.txt");
        let (ann, cy) = (ANN.to_string(), CY.to_string());
        let odd = ann.trim_start_matches("0x").to_uppercase();
        fs::write(&file, format!("# bad ones\n{odd}\n")).unwrap();
        let lists = Lists::open(&folder, &[BO]).unwrap();
        assert!(lists.changed().is_none());
        let by_hand = format!("# bad ones\n{odd}\n\n{cy} # since Monday\nwho is this\n0xdead*");
        fs::write(&file, &by_hand).unwrap();
        // The host has not looked when an administrator blocks someone.
        let mut book = lists.book();
        let new = Address::from_bytes([4; 32]);
        book.blocked.insert(new).unwrap();
        lists.keep(&book);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("{by_hand}\n{new}\n"));
        let book = lists.changed().unwrap();
        for address in [ANN, CY, new] {
            assert!(book.blocked.contains(&address));
        }
        assert!(book.whitelist.contains(&BO));
        assert!(lists.changed().is_none());
        // Who is not there any more is not blocked any more.
        fs::write(&file, format!("{cy}\n")).unwrap();
        let mut book = lists.changed().unwrap();
        assert!(!book.blocked.contains(&ANN) && !book.blocked.contains(&new));
        book.blocked.remove(&CY);
        lists.keep(&book);
        assert_eq!(fs::read_to_string(&file).unwrap(), "");
    }

    #[test]
    fn lists_that_cannot_be_read_or_written_stay_as_they_were() {
        let folder = Folder::new();
        let file = folder.join("blocklist.txt");
        fs::write(&file, format!("{ANN}\n")).unwrap();
        let lists = Lists::open(&folder, &[]).unwrap();
        fs::write(&file, b"\xff\xfe").unwrap();
        assert!(lists.changed().is_none());
        let mut book = lists.book();
        assert!(book.blocked.contains(&ANN));
        book.blocked.insert(CY).unwrap();
        lists.keep(&book);
        assert_eq!(fs::read(&file).unwrap(), b"\xff\xfe");
        fs::write(&file, format!("{ANN}\n# in order again\n")).unwrap();
        let book = lists.changed().unwrap();
        assert!(book.blocked.contains(&ANN) && book.blocked.contains(&CY));
        lists.keep(&book);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("{ANN}\n# in order again\n{CY}\n"));
    }
}
