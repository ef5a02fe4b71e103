//! `ConnectOnionClient`: gives tasks to an agent, with signatures.

use connectonion_proto::auth::{Address, Signer};
use connectonion_proto::client::{ClientConfig, ClientEvent, Resume};
use connectonion_proto::frame::{ErrorFrame, Mode};
use connectonion_proto::net::{Client, Run, RunEvent, connect, connect_lazy};
use js_sys::Uint8Array;
use rpc_core::Str;
use rpc_core::net::entropy;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast as _, JsValue};

use super::js::{Failure, Options, Outcome, Remote, Until, object, parse, read, text, write};
use super::stream::{Source, Stream};
use super::{Common, client, run};

client!(ConnectOnionClient, connectonion_proto);

impl Remote for ErrorFrame {
    fn is_retryable(&self) -> bool {
        self.retryable == Some(true)
    }

    fn detail(&self) -> JsValue {
        write(self).unwrap_or_else(JsValue::from)
    }
}

impl ConnectOnionClient {
    fn event(&self, event: ClientEvent) -> Option<Outcome> {
        match event {
            ClientEvent::Step(step) => Some(parse(step.frame.get())),
            ClientEvent::OnboardRequired(frame) => Some(write(&frame)),
            ClientEvent::Complaint(frame) => Some(write(&frame)),
            ClientEvent::RunEnded(Ok(output)) => Some(write(&output)),
            ClientEvent::Unknown { raw, .. } => Some(parse(raw.get())),
            _ => None,
        }
    }
}

/// The next step of a run, as the host sends it.
pub(crate) async fn next(run: &mut Run) -> Option<Outcome> {
    loop {
        let step = match run.next().await? {
            Ok(RunEvent::Step(step)) => parse(step.frame.get()),
            Ok(RunEvent::AskUser(asked)) => parse(asked.step().frame.get()),
            Ok(RunEvent::Approval(asked)) => parse(asked.step().frame.get()),
            Ok(RunEvent::PlanReview(asked)) => parse(asked.step().frame.get()),
            Ok(RunEvent::TurnsReached(asked)) => parse(asked.step().frame.get()),
            Ok(RunEvent::Queued { id }) => Ok(object([
                ("type", "RUNTIME_INPUT_ACK".into()),
                ("id", id.as_str().into()),
            ])),
            // Exact: no run has that many steps.
            Ok(RunEvent::Lagged(count)) => Ok(object([("lagged", (count as f64).into())])),
            Ok(_) => continue,
            Err(error) => Err(error.into()),
        };
        return Some(step);
    }
}

pub(crate) async fn result(run: &mut Run) -> Outcome {
    write(&run.finish().await?)
}

#[wasm_bindgen]
impl ConnectOnionClient {
    /// Makes a private key: 32 random bytes. Store it, for the agent knows this client by it.
    #[wasm_bindgen(js_name = generateKey)]
    pub fn generate_key() -> Vec<u8> {
        (0..4).flat_map(|_| entropy().to_ne_bytes()).collect()
    }

    /// Connects to an agent, with this private key.
    pub async fn connect(url: String, options: JsValue) -> Outcome<ConnectOnionClient> {
        let options = Options::new(&options);
        let common = Common::take(&options)?;
        let key = options.take("key")?.and_then(|it| it.dyn_into().ok());
        let key = key.and_then(|key: Uint8Array| key.to_vec().try_into().ok());
        let key = key.ok_or_else(|| Failure::invalid("key", "not a Uint8Array of 32 bytes"))?;
        let resume = options.take("resume")?;
        let resume = resume.map(|it| read_resume(&it)).transpose()?;
        let host = options.text("host")?.map(|host| host.parse::<Address>());
        let defaults = ClientConfig::default();
        let mut config = ClientConfig {
            answer_timeout: common.call_timeout.or(defaults.answer_timeout),
            host: host
                .transpose()
                .map_err(|why| Failure::invalid("host", why))?,
            resume: resume.unwrap_or_default(),
            invite_code: options.text("inviteCode")?.map(Into::into),
            insecure: common.insecure,
            ..defaults
        };
        options.watch(&mut config.link)?;
        let signer = Signer::from_seed(&key);
        let (client, events, connection) = match common.lazy {
            true => connect_lazy(&url, signer, config)?,
            false => common.until.wait(connect(&url, signer, config)).await?,
        };
        run(connection);
        Ok(Self::new(client, events))
    }

    /// The address of this client: its public key.
    #[wasm_bindgen(getter)]
    pub fn address(&self) -> String {
        self.client.address().to_string()
    }

    /// Sends a prompt. Resolves once it is sent. A running agent reads it beside its work.
    pub async fn input(&self, prompt: JsValue, options: JsValue) -> Outcome<Stream> {
        let until = Until::of(&options)?;
        let run = match prompt.as_string() {
            Some(text) => self.client.chat(text).await,
            None => self.client.send(read(&prompt, "prompt")?).await,
        };
        Ok(self.stream(run, until))
    }

    /// Follows the run that goes on, of another device or of this page before it was loaded again.
    pub fn attach(&self, options: JsValue) -> Outcome<Stream> {
        Ok(self.stream(self.client.attach(), Until::of(&options)?))
    }

    fn stream(&self, run: Run, until: Until) -> Stream {
        Stream::new(Source::ConnectOnion(run, self.client.clone()), until)
    }

    /// Answers a question of the agent: `request_id` is the `id` of the step that asks.
    pub async fn respond(&self, response: JsValue) -> Outcome<()> {
        Ok(self.client.respond(read(&response, "response")?).await?)
    }

    /// Stops the agent after its current step.
    pub async fn interrupt(&self) -> Outcome<()> {
        Ok(self.client.interrupt().await?)
    }

    /// Changes the agent's mode; `turns` is for the mode `ulw`.
    #[wasm_bindgen(js_name = setMode)]
    pub async fn set_mode(&self, mode: String, turns: Option<u32>) -> Outcome<()> {
        let turns = turns.map(Into::into);
        Ok(self
            .client
            .set_mode(Mode::from(Str::from(mode)), turns)
            .await?)
    }

    /// Requests the status of a session.
    pub async fn status(&self, session_id: String, options: JsValue) -> Outcome {
        let until = Until::of(&options)?;
        write(&until.wait(self.client.status(session_id)).await?)
    }

    /// What the option `resume` takes, to go on after the page was loaded again: store it.
    pub fn session(&self) -> Outcome {
        write(&self.client.session())
    }
}

fn read_resume(value: &JsValue) -> Outcome<Resume> {
    Resume::parse(&text(value)?).map_err(|why| Failure::invalid("resume", why))
}

/// Stops the agent. A run that is over is not stopped.
pub(crate) async fn stop(run: &Run, client: &Client) -> Outcome<()> {
    match run.outcome() {
        Some(_) => Ok(()),
        None => Ok(client.interrupt().await?),
    }
}
