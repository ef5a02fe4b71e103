//! [`Attachments`]: files and images that go with a prompt.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use connectonion_proto::Json;
use connectonion_proto::frame::{Attachment, Input};
use connectonion_proto::limits::{MAX_FILE_BYTES, MAX_FILES};

use crate::bounded;

/// What goes with the next prompt.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    files: Vec<Attachment>,
    images: Vec<String>,
}

impl Attachments {
    /// Takes a file along, or says why not.
    pub(crate) fn file(&mut self, path: &Path) -> Result<(), String> {
        if self.files.len() == MAX_FILES {
            return Err(format!("an agent takes {MAX_FILES} files at once"));
        }
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let kind = image_type(path).unwrap_or("application/octet-stream");
        self.files
            .push(Attachment::new(name, data_url(kind, path)?));
        Ok(())
    }

    /// Takes an image along, or says why not.
    pub(crate) fn image(&mut self, path: &Path) -> Result<(), String> {
        let kind = image_type(path).ok_or_else(|| {
            let path = path.display();
            format!("{path}: an image is a png, jpg, gif or webp; others go as a file")
        })?;
        self.images.push(data_url(kind, path)?);
        Ok(())
    }

    /// The prompt with what goes with it, which is then gone.
    pub(crate) fn input(&mut self, prompt: &str) -> Result<Input, rpc_core::Refused> {
        let Self { files, images } = std::mem::take(self);
        let mut input = Input::new(prompt);
        if !files.is_empty() {
            input.files = Some(Json::of(&files)?);
        }
        if !images.is_empty() {
            input.images = Some(Json::of(&images)?);
        }
        Ok(input)
    }
}

fn image_type(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_string_lossy().to_lowercase();
    Some(match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => return None,
    })
}

fn data_url(kind: &str, path: &Path) -> Result<String, String> {
    let bytes = bounded::file(path, MAX_FILE_BYTES as u64)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!("data:{kind};base64,{}", STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;

    #[test]
    fn attachments_go_with_one_prompt() {
        let folder = Folder::new();
        let note = folder.file("a.txt", "hi");
        let dot = folder.file("dot.PNG", "not really");
        let mut along = Attachments::default();
        along.file(&note).unwrap();
        along.image(&dot).unwrap();
        assert!(along.image(&note).unwrap_err().contains("png"));
        assert!(along.file(&folder.join("b")).unwrap_err().contains("b"));
        let input = along.input("look").unwrap();
        let files = input.files.as_ref().unwrap().get();
        assert_eq!(
            files,
            r#"[{"name":"a.txt","data":"data:application/octet-stream;base64,aGk="}]"#
        );
        assert!(
            input
                .images
                .unwrap()
                .get()
                .starts_with(r#"["data:image/png;base64,"#)
        );
        assert_eq!(along.input("more").unwrap(), Input::new("more"));
    }
}
