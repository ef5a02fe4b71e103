//! [`Folder`]: the files that an agent may read and write, and no others.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::bounded;

/// The largest file to read and the longest text to write, in bytes.
pub const MAX_FILE: u64 = 64 * 1024;
/// Most files in a list.
const MAX_LISTED: usize = 200;

/// A folder that no name can leave: neither `..` nor an absolute path nor a link.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
    dir: Arc<Dir>,
}

impl Folder {
    /// Opens a folder, and creates it if it is missing.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let root = path.canonicalize()?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self {
            root,
            dir: Arc::new(dir),
        })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns the sorted names of its files, including those in subfolders, with `/` as separator, and how
    /// many entries are neither, such as links.
    ///
    /// # Errors
    /// A description of the failure, for people and models.
    pub fn list(&self) -> Result<(Vec<String>, usize), String> {
        let (mut names, mut others) = (Vec::new(), 0);
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).map_err(|error| told("the folder", &error))?;
            for entry in entries {
                let entry = entry.map_err(|error| told("the folder", &error))?;
                let kind = entry.file_type().map_err(|error| told("a file", &error))?;
                let path = entry.path();
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file()
                    && let Ok(name) = path.strip_prefix(&self.root)
                {
                    names.push(name.to_string_lossy().replace('\\', "/"));
                } else {
                    others += 1;
                }
                if names.len() + folders.len() > MAX_LISTED {
                    return Err(format!("there are more than {MAX_LISTED} files"));
                }
            }
        }
        names.sort();
        Ok((names, others))
    }

    /// Returns whether there is something of this name in the folder.
    #[must_use]
    pub fn exists(&self, name: &str) -> bool {
        let path = self.inside(name);
        path.is_ok_and(|path| self.dir.symlink_metadata(path).is_ok())
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// A description of the failure, for people and models.
    pub fn read(&self, name: &str) -> Result<String, String> {
        let path = self.inside(name)?;
        let told = |error| told(name, &error);
        // Before it is opened: opening a pipe waits for its other end.
        if !self.dir.metadata(&path).map_err(told)?.is_file() {
            return Err(format!("{name:?} is not a file"));
        }
        let file = self.dir.open(&path).map_err(told)?;
        let bytes = bounded::read(file, MAX_FILE).map_err(told)?;
        String::from_utf8(bytes).map_err(|_| format!("{name:?} is not UTF-8 text"))
    }

    /// Writes a file, and replaces an existing one.
    ///
    /// # Errors
    /// A description of the failure, for people and models.
    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        if text.len() as u64 > MAX_FILE {
            return Err(format!("the text is longer than {MAX_FILE} bytes"));
        }
        let path = self.inside(name)?;
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let made = folder.map_or(Ok(()), |folder| self.dir.create_dir_all(folder));
        let written = made.and_then(|()| self.dir.write(&path, text));
        written.map_err(|error| told(name, &error))
    }

    /// Returns a name as a path in the folder. The whole path of a file in the folder is a name too.
    fn inside(&self, name: &str) -> Result<PathBuf, String> {
        let path = Path::new(name.trim());
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        let is_name =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let odd = name.trim().contains(|c: char| c.is_control() || c == '\\');
        let odd = odd || path.as_os_str().is_empty();
        if odd || !path.components().all(is_name) {
            return Err(format!("{name:?} is not the name of a file in the folder"));
        }
        Ok(path.to_owned())
    }
}

fn told(what: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no file {what:?}"),
        // The system's own refusals have a number; this one is that of the folder.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            format!("{what:?} leads out of the folder")
        }
        _ => format!("{what}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed with the value, with another beside it.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> (Self, Folder) {
            let path =
                std::env::temp_dir().join(format!("agent-folder-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            let folder = Folder::open(&path.join("inside")).unwrap();
            fs::write(path.join("secret.txt"), "secret").unwrap();
            (Self(path), folder)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_written_file_can_be_read_and_is_listed() {
        let (_place, folder) = Place::new("written");
        folder.write("b.txt", "zwei").unwrap();
        folder.write("notes/./a.txt", "eins").unwrap();
        folder.write("b.txt", "drei").unwrap();
        assert_eq!(folder.read("b.txt").as_deref(), Ok("drei"));
        assert_eq!(folder.read("notes/a.txt").as_deref(), Ok("eins"));
        let whole = folder.path().join("b.txt").display().to_string();
        assert_eq!(folder.read(&whole).as_deref(), Ok("drei"));
        assert_eq!(folder.list().unwrap().0, ["b.txt", "notes/a.txt"]);
    }

    #[test]
    fn no_name_leads_out() {
        let (place, folder) = Place::new("out");
        let absolute = place.0.join("secret.txt").display().to_string();
        for name in [
            "../secret.txt",
            "a/../../secret.txt",
            "..",
            "",
            " ",
            "a\0",
            "a\\b",
            &absolute,
        ] {
            assert!(folder.read(name).is_err(), "{name}");
            assert!(folder.write(name, "x").is_err(), "{name}");
        }
        assert_eq!(
            fs::read_to_string(place.0.join("secret.txt")).unwrap(),
            "secret"
        );
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out() {
        use std::os::unix::fs::symlink;
        let (place, folder) = Place::new("link");
        symlink(place.0.join("secret.txt"), folder.path().join("file")).unwrap();
        symlink(&place.0, folder.path().join("up")).unwrap();
        for name in ["file", "up/secret.txt"] {
            assert!(
                folder.read(name).unwrap_err().contains("leads out"),
                "{name}"
            );
            assert!(folder.write(name, "x").is_err(), "{name}");
        }
        assert!(folder.write("up/new/x.txt", "x").is_err());
        assert!(!place.0.join("new").exists());
        assert_eq!(folder.list().unwrap(), (Vec::new(), 2));
    }

    #[test]
    fn files_have_a_size() {
        let (_place, folder) = Place::new("size");
        let long = "x".repeat(usize::try_from(MAX_FILE).unwrap() + 1);
        assert!(folder.write("x", &long).unwrap_err().contains("longer"));
        fs::write(folder.path().join("x"), &long).unwrap();
        assert!(folder.read("x").unwrap_err().contains("larger"));
        fs::write(folder.path().join("x"), b"\xff").unwrap();
        assert!(folder.read("x").unwrap_err().contains("not UTF-8"));
        assert!(folder.read("y").unwrap_err().contains("no file"));
    }
}
