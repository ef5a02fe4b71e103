//! What every page consists of, and what its files must not hold.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::*;

/// Where the libraries are.
const VENDOR: &str = "/page/vendor/";

/// Checks a page with its own files: the page and its scripts name only files that are there, all files
/// are used, and none reaches for another host or makes markup on its own.
pub(crate) fn check(skeleton: &Skeleton) {
    let all: Vec<_> = skeleton.files.iter().chain(FILES).collect();
    let source = |asset: &Asset| std::str::from_utf8(asset.body).unwrap();
    let page = skeleton.page("/");
    let page = std::str::from_utf8(&page).unwrap();
    assert!(!page.contains(['{', '}']), "{page}");
    let mut named: Vec<_> = page
        .split('"')
        .filter_map(|part| part.strip_prefix("./"))
        .map(|path| format!("/{path}"))
        .collect();
    for (path, asset) in all.iter().filter(|(path, _)| !path.starts_with(VENDOR)) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let imports = source(asset).split("from \".").skip(1);
        named.extend(imports.map(|rest| format!("{folder}{}", rest.split('"').next().unwrap())));
    }
    for path in &named {
        assert!(
            path == "/manifest.json" || all.iter().any(|(known, _)| known == path),
            "{path} is missing"
        );
    }
    for (path, _) in &all {
        assert!(
            named.iter().any(|named| named == path),
            "{path} is used by nobody"
        );
    }
    for (path, text) in all
        .iter()
        .filter(|(path, _)| *path != "/icon.svg" && !path.starts_with(VENDOR))
        .map(|(path, asset)| (*path, source(asset)))
        .chain([("the page", page)])
    {
        for word in [
            "://\"",
            "http:",
            "url(",
            "@import",
            " style=",
            " onclick=",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "cookie",
        ] {
            assert!(!text.contains(word), "{path}: {word}");
        }
    }
}

#[test]
fn a_file_is_found_by_its_path() {
    let file = |path| Skeleton::default().file(path);
    assert!(file("/page/dom.js").is_some_and(|it| it.body().starts_with(b"//")));
    for path in ["/dom.js", "/page/", "/page/DOM.js", "/page/../dom.js", ""] {
        assert!(file(path).is_none(), "{path}");
    }
}

#[test]
fn the_libraries_are_those_of_the_registry() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/vendor");
    let sums = fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    let mut summed = BTreeSet::new();
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        let found = Sha256::digest(fs::read(folder.join(name)).unwrap());
        let found: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, sum, "{name}");
        summed.insert(name.to_owned());
    }
    let ours = ["README.md", "SHA256SUMS", "package.json"].map(str::to_owned);
    let files = fs::read_dir(folder).unwrap();
    let files: BTreeSet<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(&files - &ours.into(), summed);
}

#[test]
fn links_lead_to_the_folder_of_the_page() {
    for (path, link) in [
        ("/", "./app.js"),
        ("/a", "./app.js"),
        ("/a/b/", "./../../app.js"),
    ] {
        let page = Skeleton::default().page(path);
        let page = std::str::from_utf8(&page).unwrap();
        assert!(page.contains(&format!("src=\"{link}\"")), "{path}: {page}");
    }
}
