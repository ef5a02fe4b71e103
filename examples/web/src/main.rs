//! Compiles the page's module into `pkg`. `bind MODULE.wasm FOLDER` only binds another one.

#[cfg(target_family = "wasm")]
fn main() {}

#[cfg(not(target_family = "wasm"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::path::Path;

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
    bindgen.generate(folder)?;
    Ok(())
}

#[cfg(not(target_family = "wasm"))]
fn compile(here: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let words = "build --release --lib --target wasm32-unknown-unknown --target-dir target";
    let mut cargo = std::process::Command::new(env!("CARGO"));
    let built = cargo.current_dir(here).args(words.split(' ')).status()?;
    match built.success() {
        true => Ok(()),
        false => Err("`rustup target add wasm32-unknown-unknown` may help".into()),
    }
}
