//! [`Uploads`]: the files of all sessions, in one folder. They are counted, and end with their sessions.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rpc_core::sync::Mutex;
use sha2::{Digest as _, Sha256};

use super::{Saved, UploadError, UploadLimits, plan, save};
use crate::frame::Attachment;
use crate::hub::Owner;

/// What a file counts at least: a part of a disk.
const MIN_BYTES: u64 = 4096;

/// The time of the last change of a file that outlives its session, since 1970: in 2096.
const KEPT: Duration = Duration::from_secs(4_000_000_000);
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Who sends files, and for which session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    session: u64,
    owner: u32,
    caller: IpAddr,
}

impl Sender {
    pub(crate) fn new(owner: Owner, session_id: &str, caller: IpAddr) -> Self {
        let (name, whose) = match owner {
            Owner::Key(address) => (address.to_string(), address.to_string()),
            Owner::Unsigned => (String::new(), caller.to_string()),
        };
        let [session, owner] = [format!("{name}\n{session_id}"), whose].map(|text| {
            let hash = Sha256::digest(text);
            let bytes = hash.iter().take(8);
            bytes.fold(0, |mark, byte| mark << 8 | u64::from(*byte))
        });
        let owner = (owner >> 32) as u32;
        Self {
            session,
            owner,
            caller,
        }
    }

    /// The number that the names of its files begin with: the session, the owner, and what is random.
    fn number(self, random: u64) -> u128 {
        // Each file of a prompt adds one to it.
        let random = u128::from(random >> 33);
        u128::from(self.session) << 64 | u128::from(self.owner) << 32 | random
    }
}

/// Returns the session and the owner in the name of a file.
fn marks(name: &str) -> Option<(u64, u32)> {
    let session = u64::from_str_radix(name.get(..16)?, 16).ok()?;
    let owner = u32::from_str_radix(name.get(16..24)?, 16).ok()?;
    u32::from_str_radix(name.get(24..32)?, 16).ok()?;
    (name.get(32..33)? == "_").then_some((session, owner))
}

/// A file in the folder.
#[derive(Debug)]
struct StoredFile {
    session: u64,
    owner: u32,
    /// Who has sent it, since the host began.
    caller: Option<IpAddr>,
    bytes: u64,
}

/// The files by their names; `None` before the folder was read.
type Files = Option<HashMap<String, StoredFile>>;

/// The folder of a host.
#[derive(Debug)]
pub(crate) struct Uploads {
    folder: PathBuf,
    limits: UploadLimits,
    files: Mutex<Files>,
}

impl Uploads {
    /// Agents get paths, and may work somewhere else: pass an absolute folder.
    pub(crate) const fn new(folder: PathBuf, limits: UploadLimits) -> Self {
        Self {
            folder,
            limits,
            files: Mutex::new(None),
        }
    }

    /// Saves files, and returns them with their paths, in order. Blocks.
    ///
    /// # Errors
    /// [`UploadError`]; none of the files remains then.
    pub(crate) fn save(
        &self,
        files: &[Attachment],
        sender: Sender,
        random: u64,
    ) -> Result<Vec<(Saved, PathBuf)>, UploadError> {
        let plan = plan(files, sender.number(random), &self.limits)?;
        let mut held = self.files.lock();
        let held = self.read(&mut held)?;
        let more = |file: &Saved| (file.bytes.len() as u64).max(MIN_BYTES);
        let sum: u64 = plan.iter().map(more).sum();
        let max = self.limits.max_bytes;
        let is_over = |max: u64, is_one: &dyn Fn(&StoredFile) -> bool| {
            let others = held.values().filter(|it| is_one(it));
            sum + others.map(|it| it.bytes).sum::<u64>() > max
        };
        let caller = Some(sender.caller).filter(|it| !it.is_unspecified());
        if is_over(max / 4, &|it| it.owner == sender.owner)
            || is_over(max / 4, &|it| caller.is_some() && it.caller == caller)
        {
            return Err(UploadError::NoRoom { max: max / 4 });
        }
        if is_over(max, &|_| true) {
            return Err(UploadError::NoRoom { max });
        }
        let paths = save(&self.folder, &plan)?;
        for file in &plan {
            let one = StoredFile {
                session: sender.session,
                owner: sender.owner,
                caller,
                bytes: more(file),
            };
            held.insert(file.name.clone(), one);
        }
        Ok(plan.into_iter().zip(paths).collect())
    }

    /// Deletes the files of a session. Blocks.
    ///
    /// # Errors
    /// The system's error. Retrying is safe.
    pub(crate) fn remove_session(&self, owner: Owner, session_id: &str) -> io::Result<()> {
        let session = Sender::new(owner, session_id, UNKNOWN).session;
        self.remove(|_, it| it.session == session)
    }

    /// Deletes the files of a prompt. Blocks.
    ///
    /// # Errors
    /// The system's error. Retrying is safe.
    pub(crate) fn remove_files<'a>(&self, paths: impl Iterator<Item = &'a str>) -> io::Result<()> {
        let names: HashSet<_> = paths.filter_map(|it| Path::new(it).file_name()).collect();
        self.remove(|name, _| names.contains(OsStr::new(name)))
    }

    /// Lets the files of a session outlive it: another session of the owner goes on from it. Blocks.
    ///
    /// # Errors
    /// The system's error. Retrying is safe.
    pub(crate) fn keep_session(&self, owner: Owner, session_id: &str) -> io::Result<()> {
        let session = Sender::new(owner, session_id, UNKNOWN).session;
        let mut files = self.files.lock();
        let files = self.read(&mut files)?.iter();
        for (name, _) in files.filter(|(_, it)| it.session == session) {
            let file = fs::File::options()
                .write(true)
                .open(self.folder.join(name))?;
            file.set_modified(UNIX_EPOCH + KEPT)?;
        }
        Ok(())
    }

    /// Deletes the files of all sessions but these, if they were there before this time. Those that were
    /// [kept](Self::keep_session) stay while their owner has a session. Blocks.
    ///
    /// # Errors
    /// The system's error. Retrying is safe.
    pub(crate) fn remove_others<'a>(
        &self,
        sessions: impl Iterator<Item = (Owner, &'a str)>,
        before: SystemTime,
    ) -> io::Result<()> {
        let (mut kept, mut owners, mut has_unsigned) = (HashSet::new(), HashSet::new(), false);
        for (owner, id) in sessions {
            let one = Sender::new(owner, id, UNKNOWN);
            kept.insert(one.session);
            owners.insert(one.owner);
            has_unsigned |= owner == Owner::Unsigned;
        }
        self.remove(|name, it| {
            let is_over = |at: SystemTime| match at < UNIX_EPOCH + KEPT {
                true => at < before,
                false => !has_unsigned && !owners.contains(&it.owner),
            };
            let changed = || fs::metadata(self.folder.join(name))?.modified();
            !kept.contains(&it.session) && changed().is_ok_and(is_over)
        })
    }

    /// Returns whether it is known that there are no files.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.lock().as_ref().is_some_and(HashMap::is_empty)
    }

    fn remove(&self, is_one: impl Fn(&str, &StoredFile) -> bool) -> io::Result<()> {
        let mut files = self.files.lock();
        let files = self.read(&mut files)?;
        let mut failed = Ok(());
        files.retain(|name, it| {
            if !is_one(name, it) {
                return true;
            }
            match fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    failed = Err(error);
                    true
                }
                _ => false,
            }
        });
        failed
    }

    /// Returns the files, as they were when the folder was read first. Others are not its own.
    fn read<'a>(&self, files: &'a mut Files) -> io::Result<&'a mut HashMap<String, StoredFile>> {
        let mut found = HashMap::new();
        if files.is_none() {
            let entries = match fs::read_dir(&self.folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                entries => Some(entries?),
            };
            for entry in entries.into_iter().flatten() {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if let Some((session, owner)) = marks(&name) {
                    let bytes = entry.metadata()?.len().max(MIN_BYTES);
                    let one = StoredFile {
                        session,
                        owner,
                        caller: None,
                        bytes,
                    };
                    found.insert(name, one);
                }
            }
        }
        Ok(files.get_or_insert(found))
    }
}
