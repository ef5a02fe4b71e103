//! Binds a WebAssembly module for pages and Node: `bind MODULE.wasm FOLDER`.

#[cfg(target_family = "wasm")]
fn main() {}

#[cfg(not(target_family = "wasm"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(module), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bind MODULE.wasm FOLDER".into());
    };
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    bindgen.input_path(module).web(true)?;
    bindgen.omit_default_module_path(false).typescript(false);
    bindgen.generate(folder)?;
    Ok(())
}
