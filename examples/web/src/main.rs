//! Compiles the module of the clients and makes the npm package of it, in `pkg`. `bind MODULE.wasm FOLDER` makes a
//! package of a module that is there, or only binds it if it is another one.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

const MODULE: &str = "switchboard_clients.wasm";
const PROTOCOLS: [&str; 5] = ["acolyte", "connectonion", "exoclaw", "smarthole", "snek"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (module, folder) = match (arguments.next(), arguments.next()) {
        (None, None) => {
            compile(here)?;
            let module = here
                .join("target/wasm32-unknown-unknown/release")
                .join(MODULE);
            (module, here.join("pkg"))
        }
        (Some(module), Some(folder)) => (module.into(), folder.into()),
        _ => return Err("usage: bind [MODULE.wasm FOLDER]".into()),
    };
    let is_package = module.ends_with(MODULE);
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    bindgen.input_path(module).web(true)?;
    bindgen
        .omit_default_module_path(is_package)
        .remove_name_section(true)
        .typescript(false);
    bindgen.generate(&folder)?;
    if is_package {
        package(&here.join("../.."), &folder)?;
    }
    Ok(())
}

/// Adds what belongs to the package beside the module, with the version of the crates.
fn package(root: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let mut lines = manifest.lines();
    let version = lines.find_map(|line| line.strip_prefix("version = "));
    let version = version.ok_or("Cargo.toml has no version")?;
    for entry in fs::read_dir(root.join("examples/web/npm"))? {
        let file = entry?.path();
        let text = fs::read_to_string(&file)?.replace("\"0.0.0\"", version);
        fs::write(folder.join(file.file_name().unwrap_or_default()), text)?;
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(root.join(licence), folder.join(licence))?;
    }
    fs::create_dir_all(folder.join("types"))?;
    for protocol in PROTOCOLS {
        let types = root.join(format!("{protocol}-proto/types/frames.d.ts"));
        fs::copy(types, folder.join(format!("types/{protocol}.d.ts")))?;
    }
    Ok(())
}

fn compile(here: &Path) -> Result<(), Box<dyn Error>> {
    let words = "build --release --lib --target wasm32-unknown-unknown --target-dir target";
    let mut cargo = Command::new(env!("CARGO"));
    let built = cargo.current_dir(here).args(words.split(' ')).status()?;
    if built.success() {
        return Ok(());
    }
    let words = "--print target-libdir --target wasm32-unknown-unknown";
    let library = Command::new("rustc").args(words.split(' ')).output()?;
    match Path::new(std::str::from_utf8(&library.stdout)?.trim()).exists() {
        true => Err("the clients do not compile: see above".into()),
        false => Err("run `rustup target add wasm32-unknown-unknown` first".into()),
    }
}
