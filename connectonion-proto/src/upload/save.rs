//! [`save`]: writes files to a folder, all or none.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Saved;

/// Writes files to a folder, which is created if missing, and returns their paths in order. No file
/// is overwritten. On Unix only this user may read them. Blocks.
///
/// Pass an absolute folder: the paths are for the agent.
///
/// # Errors
/// The system's error; none of the files remains then. Retrying is safe.
pub fn save(folder: &Path, files: &[Saved]) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let mut paths = Vec::with_capacity(files.len());
    for file in files {
        let path = folder.join(&file.name);
        match create(&path, &mut paths).and_then(|mut to| to.write_all(&file.bytes)) {
            Ok(()) => {}
            Err(error) => {
                for path in &paths {
                    let _ = fs::remove_file(path);
                }
                return Err(error);
            }
        }
    }
    Ok(paths)
}

/// Creates a file, and adds it to `made`.
fn create(path: &Path, made: &mut Vec<PathBuf>) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    made.push(path.to_owned());
    Ok(file)
}
