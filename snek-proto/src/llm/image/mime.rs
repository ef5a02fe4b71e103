//! MIME types of images.

use super::urls::is_space;

/// The type of last resort.
const FALLBACK: &str = "image/png";

/// Returns the image type from Python's `mimetypes`, including the non-strict ones.
fn by_extension(extension: &str) -> Option<&'static str> {
    Some(match &*extension.to_ascii_lowercase() {
        "png" => "image/png",
        "jpg" | "jpeg" | "jpe" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "bmp" => "image/bmp",
        "avif" => "image/avif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "ico" => "image/vnd.microsoft.icon",
        "tif" | "tiff" => "image/tiff",
        "ief" => "image/ief",
        "ras" => "image/x-cmu-raster",
        "pnm" => "image/x-portable-anymap",
        "pbm" => "image/x-portable-bitmap",
        "pgm" => "image/x-portable-graymap",
        "ppm" => "image/x-portable-pixmap",
        "rgb" => "image/x-rgb",
        "xbm" => "image/x-xbitmap",
        "xpm" => "image/x-xpixmap",
        "xwd" => "image/x-xwindowdump",
        "pict" | "pct" | "pic" => "image/pict",
        _ => return None,
    })
}

/// Returns the MIME type of an image, from its name or address and its contents.
///
/// The extension, in any case, takes precedence over the contents; then the first bytes decide; the
/// last resort is `image/png`. Only extensions of images count. An extension before a query or
/// fragment counts only if the contents do not reveal the type.
#[must_use]
pub fn detect_mime(name_or_url: &str, bytes: &[u8]) -> &'static str {
    let name = name_or_url.trim_matches(is_space);
    if let Some(mime) = extension(name).and_then(by_extension) {
        return mime;
    }
    if let Some(mime) = by_magic(bytes) {
        return mime;
    }
    let path = name.split(['?', '#']).next().unwrap_or_default();
    extension(path).and_then(by_extension).unwrap_or(FALLBACK)
}

/// Returns what follows the last dot of the last part of a path; dots at the start of that part do
/// not count.
fn extension(path: &str) -> Option<&str> {
    let file = path.rsplit('/').next().unwrap_or_default();
    let (base, extension) = file.trim_start_matches('.').rsplit_once('.')?;
    (!base.is_empty()).then_some(extension)
}

fn by_magic(bytes: &[u8]) -> Option<&'static str> {
    let is = |start: &[u8]| bytes.starts_with(start);
    Some(match bytes.get(8..12) {
        _ if is(b"\x89PNG\r\n\x1a\n") => "image/png",
        _ if is(b"\xff\xd8") => "image/jpeg",
        _ if is(b"GIF87a") || is(b"GIF89a") => "image/gif",
        Some(b"WEBP") if is(b"RIFF") => "image/webp",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";
    const JPEG: &[u8] = b"\xff\xd8\xff\xe0";

    #[test]
    fn the_extension_takes_precedence_over_the_contents() {
        assert_eq!(detect_mime("https://h/a.PNG", JPEG), "image/png");
        assert_eq!(detect_mime("a.jpe", PNG), "image/jpeg");
        assert_eq!(detect_mime("a.svg", b""), "image/svg+xml");
        assert_eq!(detect_mime("https://host.gif", PNG), "image/gif");
    }

    #[test]
    fn the_contents_decide_without_an_extension() {
        for (bytes, mime) in [
            (PNG, "image/png"),
            (JPEG, "image/jpeg"),
            (b"\xff\xd8", "image/jpeg"),
            (b"GIF87a", "image/gif"),
            (b"GIF89a!", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        ] {
            for name in [
                "",
                "x",
                ".gif",
                "a/.bmp",
                "a.txt",
                "a.b/c",
                "https://h/a.bmp?v=1",
            ] {
                assert_eq!(detect_mime(name, bytes), mime, "{name:?} {bytes:?}");
            }
        }
    }

    #[test]
    fn unknown_contents_default_to_png() {
        for bytes in [
            &b""[..],
            b"\xff",
            b"GIF88a",
            b"RIFF\0\0\0\0WAVE",
            b"RIFF\0\0\0\0WEB",
            b"\x89PNG\r\n\x1a",
        ] {
            assert_eq!(detect_mime("a", bytes), "image/png");
            assert_eq!(detect_mime("http://h/a.svg?v=1", bytes), "image/svg+xml");
            assert_eq!(detect_mime("http://h/a.gif#x", bytes), "image/gif");
        }
    }
}
