//! Values in the words of the known hosts about unknown types.

use rpc_core::Json;

use crate::console::is_hidden;

/// The number of characters shown of a peer's text.
const MOST: usize = 64;

/// Returns a text in quotation marks. Invisible characters are escaped, and a long text is cut.
pub(super) fn text(text: &str) -> String {
    let mut rest = text.chars();
    let shown = rest.by_ref().take(MOST);
    let shown: String = shown.flat_map(char::escape_debug).collect();
    let end = if rest.next().is_some() { "…" } else { "" };
    format!("'{shown}{end}'")
}

/// Returns a value as Python prints it, or as JSON; a long one is cut.
pub(super) fn value(value: &Json) -> String {
    match value.get() {
        "null" => "None".to_owned(),
        "true" => "True".to_owned(),
        "false" => "False".to_owned(),
        json => match value.as_str() {
            Some(words) => text(&words),
            None => {
                let shown = json.chars().take(MOST);
                shown
                    .map(|it| if is_hidden(it) { ' ' } else { it })
                    .collect()
            }
        },
    }
}
