//! Compiles the page's module into `pkg`. `bind MODULE.wasm FOLDER` only binds another one.

use std::path::Path;
use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (module, folder) = match (arguments.next(), arguments.next()) {
        (None, None) => {
            compile(here)?;
            let module = "target/wasm32-unknown-unknown/release/switchboard_page.wasm";
            (here.join(module), here.join("pkg"))
        }
        (Some(module), Some(folder)) => (module.into(), folder.into()),
        _ => return Err("usage: bind [MODULE.wasm FOLDER]".into()),
    };
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    bindgen.input_path(module).web(true)?;
    bindgen.omit_default_module_path(false).typescript(false);
    Ok(bindgen.generate(folder)?)
}

fn compile(here: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let words = "build --release --lib --target wasm32-unknown-unknown --target-dir target";
    let mut cargo = Command::new(env!("CARGO"));
    let built = cargo.current_dir(here).args(words.split(' ')).status()?;
    if built.success() {
        return Ok(());
    }
    let words = "--print target-libdir --target wasm32-unknown-unknown";
    let library = Command::new("rustc").args(words.split(' ')).output()?;
    match Path::new(std::str::from_utf8(&library.stdout)?.trim()).exists() {
        true => Err("the page does not compile: see above".into()),
        false => Err("run `rustup target add wasm32-unknown-unknown` first".into()),
    }
}
