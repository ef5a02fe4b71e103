//! [`Folder`]: the files that an agent may read and write, and no others.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use crate::bounded;

/// The largest file to read and the longest text to write, in bytes.
pub const MAX_FILE: u64 = 64 * 1024;
/// Most files in a list.
const MAX_LISTED: usize = 200;

/// A folder that no name can leave: neither `..` nor an absolute path nor a link.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Opens a folder, and creates it if it is missing.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let root = path.canonicalize()?;
        Ok(Self { root })
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
        path.is_ok_and(|path| path.symlink_metadata().is_ok())
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// A description of the failure, for people and models.
    pub fn read(&self, name: &str) -> Result<String, String> {
        let path = self.inside(name)?;
        let path = path.canonicalize().map_err(|error| told(name, &error))?;
        if !path.starts_with(&self.root) {
            return Err(format!("{name:?} leads out of the folder"));
        }
        if !path.is_file() {
            return Err(format!("{name:?} is not a file"));
        }
        bounded::text(&path, MAX_FILE).map_err(|error| told(name, &error))
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
        let folder = path.parent().unwrap_or(&self.root);
        self.make(folder).map_err(|error| told(name, &error))?;
        let folder = folder.canonicalize().map_err(|error| told(name, &error))?;
        let is_link = fs::symlink_metadata(&path).is_ok_and(|it| it.is_symlink());
        if is_link || !folder.starts_with(&self.root) {
            return Err(format!("{name:?} leads out of the folder"));
        }
        let written = fs::File::create(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| told(name, &error))
    }

    /// Creates the parent folders of a file, unless one of them is a link.
    fn make(&self, folder: &Path) -> io::Result<()> {
        let mut path = self.root.clone();
        for part in folder.strip_prefix(&self.root).into_iter().flatten() {
            path.push(part);
            if fs::symlink_metadata(&path).is_ok_and(|it| it.is_symlink()) {
                return Err(io::Error::other("there is a link on the way"));
            }
            if !path.is_dir() {
                fs::create_dir(&path)?;
            }
        }
        Ok(())
    }

    /// Resolves a name, without following links. The whole path of a file in the folder is a name
    /// too.
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
        Ok(self.root.join(path))
    }
}

fn told(what: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no file {what:?}"),
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
    fn what_is_written_can_be_read_and_is_listed() {
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
