//! The page of `rpc_core::guide::browser`, as it is there.

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::StreamEvent;
use js_sys::Function;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

#[wasm_bindgen]
pub struct Chat(exoclaw_proto::net::Client);

#[wasm_bindgen]
impl Chat {
    pub async fn connect(url: String, token: String) -> Result<Chat, JsError> {
        let config = ClientConfig::new(token);
        let (client, _, connection) = exoclaw_proto::connect(&url, config).await?;
        spawn_local(async {
            connection.run().await;
        });
        Ok(Chat(client))
    }

    pub async fn ask(&self, text: String, show: Function) -> Result<(), JsError> {
        self.0.ready().await?;
        let mut chat = self.0.chat(text).await;
        while let Some(step) = chat.next().await {
            if let StreamEvent::Text(text) = step? {
                let _ = show.call1(&JsValue::NULL, &text.as_str().into());
            }
        }
        Ok(())
    }
}
