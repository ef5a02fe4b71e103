//! Where each setting of a model comes from.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::model::http::HttpModel;
use crate::scratch::Folder;

fn nothing(_: &str) -> Option<String> {
    None
}

fn args(provider: Provider) -> ModelArgs {
    ModelArgs {
        provider: Some(provider),
        model: Some("m".to_owned()),
        ..ModelArgs::default()
    }
}

fn resolve(
    options: &ModelArgs,
    file: &ModelArgs,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<ModelConfig, ModelError> {
    options.resolve(file, env, RequestPolicy::default())
}

fn key(config: Result<ModelConfig, ModelError>) -> String {
    let key = config.unwrap().key;
    key.map_or_else(String::new, Secret::into_inner)
}

#[test]
fn reads_names_as_written() {
    for provider in <Provider as clap::ValueEnum>::value_variants() {
        assert_eq!(Provider::read(provider.as_str()), Ok(*provider));
    }
    assert_eq!(Provider::read(" OpenAI "), Ok(Provider::OpenAi));
    assert_eq!(
        Provider::read("mock").unwrap_err(),
        "unknown provider 'mock'; choose one of scripted, openai, anthropic, \
         ollama, vllm"
    );
}

#[test]
fn a_key_is_looked_for_in_options_then_the_environment_then_the_file() {
    let folder = Folder::new();
    let env = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "from-env".to_owned());
    let blank = |_: &str| Some(" ".to_owned());
    let (plain, mut options) = (args(Provider::Anthropic), args(Provider::Anthropic));
    options.key_file = Some(folder.file("option.key", " from-option\r\n"));
    let mut file = args(Provider::Anthropic);
    file.key_file = Some(folder.file("file.key", "from-key-file"));
    assert_eq!(key(resolve(&plain, &file, &nothing)), "from-key-file");
    file.key = Some(Secret::from("from-file"));
    assert_eq!(key(resolve(&options, &file, &env)), "from-option");
    assert_eq!(key(resolve(&plain, &file, &env)), "from-env");
    assert_eq!(key(resolve(&plain, &file, &blank)), "from-file");
    assert!(!format!("{file:?}").contains("from-file"));
    options.key_file = Some(folder.file("blank.key", " \n"));
    assert_eq!(key(resolve(&options, &file, &env)), "from-env");
}

#[test]
fn quotes_around_a_key_are_dropped() {
    let folder = Folder::new();
    for (given, meant) in [
        ("\"sk\"", "sk"),
        ("'sk'", "sk"),
        ("\"sk", "\"sk"),
        ("s\"k\"", "s\"k\""),
    ] {
        let env = |name: &str| (name == "OPENAI_API_KEY").then(|| given.to_owned());
        assert_eq!(
            key(resolve(
                &args(Provider::OpenAi),
                &ModelArgs::default(),
                &env
            )),
            meant
        );
        let mut options = args(Provider::OpenAi);
        options.key_file = Some(folder.file("quoted.key", given));
        assert_eq!(
            key(resolve(&options, &ModelArgs::default(), &nothing)),
            meant
        );
    }
}

#[test]
fn headers_of_ones_own_are_enough_and_secret() {
    let mut options = args(Provider::OpenAi);
    options.model_header = vec![Secret::from("api-key: sk-hunter2")];
    let config = resolve(&options, &ModelArgs::default(), &nothing).unwrap();
    assert!(!format!("{options:?} {config:?}").contains("hunter2"));
    assert!(HttpModel::new(config.clone()).is_ok());
    for bad in ["api-key", ": x", "a b: c", "@/no/such/file"] {
        let config = config.clone().with_headers(vec![Secret::from(bad)]);
        let error = HttpModel::new(config).unwrap_err();
        assert!(matches!(error, ModelError::Setup { .. }), "{bad}");
    }
}

#[test]
fn a_missing_key_is_an_error_unless_the_address_is_another() {
    for (provider, variable) in [
        (Provider::Anthropic, "ANTHROPIC_API_KEY"),
        (Provider::OpenAi, "OPENAI_API_KEY"),
    ] {
        let mut options = args(provider);
        let none = ModelArgs::default();
        let error = resolve(&options, &none, &nothing).unwrap_err();
        let text =
            format!("{provider} needs a key: set {variable}, or name a file with --key-file");
        assert_eq!(error.to_string(), text);
        let error = resolve(&none, &options, &nothing).unwrap_err();
        assert!(error.to_string().ends_with("[agent] key_file"), "{error}");
        options.base_url = Some("http://h".to_owned());
        assert_eq!(key(resolve(&options, &none, &nothing)), "");
    }
    for provider in [Provider::Scripted, Provider::Ollama, Provider::Vllm] {
        assert_eq!(
            key(resolve(&args(provider), &ModelArgs::default(), &nothing)),
            ""
        );
    }
}

#[test]
fn a_key_file_that_cannot_be_read_is_an_error_without_its_folder() {
    let folder = Folder::new();
    let mut options = args(Provider::OpenAi);
    for path in [folder.join("none.key"), folder.to_path_buf()] {
        options.key_file = Some(path);
        let error = resolve(&options, &ModelArgs::default(), &nothing).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("cannot be read"), "{text}");
        assert!(!text.contains("/"), "{text}");
    }
}

#[test]
fn each_setting_of_an_option_goes_before_the_environment_and_the_file() {
    let env = |name: &str| (name == "OPENAI_BASE_URL").then(|| " http://env \n".to_owned());
    let mut file = args(Provider::OpenAi);
    file.base_url = Some("http://file".to_owned());
    file.max_tokens = Some(5);
    file.temperature = Some(0.5);
    file.context_tokens = Some(50);
    file.model_timeout = Some(Duration::from_secs(5));
    let mut options = ModelArgs::default();
    let config = resolve(&options, &file, &nothing).unwrap();
    assert_eq!(
        (config.provider, &*config.base_url),
        (Provider::OpenAi, "http://file")
    );
    assert_eq!(
        (&*config.model, config.max_tokens, config.temperature),
        ("m", 5, Some(0.5))
    );
    assert_eq!(
        (config.context_tokens, config.policy.idle_timeout.as_secs()),
        (50, 5)
    );
    assert_eq!(
        resolve(&options, &file, &env).unwrap().base_url,
        "http://env"
    );
    options.base_url = Some("http://option".to_owned());
    options.model = Some("o".to_owned());
    options.max_tokens = Some(6);
    options.temperature = Some(0.6);
    options.context_tokens = Some(60);
    options.model_timeout = Some(Duration::from_secs(6));
    let config = resolve(&options, &file, &env).unwrap();
    assert_eq!((&*config.model, &*config.base_url), ("o", "http://option"));
    assert_eq!((config.max_tokens, config.temperature), (6, Some(0.6)));
    assert_eq!(
        (config.context_tokens, config.policy.head_timeout.as_secs()),
        (60, 6)
    );
}

#[test]
fn names_what_is_missing() {
    let none = ModelArgs::default();
    let mut options = args(Provider::Ollama);
    options.model = Some(" ".to_owned());
    let error = resolve(&options, &none, &nothing).unwrap_err().to_string();
    assert_eq!(error, "ollama needs the name of a model: give --model");
    options.provider = Some(Provider::Anthropic);
    options.base_url = Some("http://h".to_owned());
    let config = resolve(&options, &none, &nothing).unwrap();
    assert!(config.model.starts_with("claude-"), "{}", config.model);
    options.provider = None;
    options.model = None;
    for (name, options) in [
        ("base-url", options),
        (
            "model",
            ModelArgs {
                model: Some("m".to_owned()),
                ..ModelArgs::default()
            },
        ),
    ] {
        let error = resolve(&options, &none, &nothing).unwrap_err().to_string();
        let text = format!("--{name} needs --provider, such as --provider openai");
        assert_eq!(error, text);
    }
    let file = ModelArgs {
        model: Some("m".to_owned()),
        ..ModelArgs::default()
    };
    let error = resolve(&none, &file, &nothing).unwrap_err().to_string();
    assert!(error.starts_with("model needs provider"), "{error}");
}

#[test]
fn settings_of_another_provider_do_not_count() {
    let mut file = args(Provider::Anthropic);
    file.key = Some(Secret::from("sk-anthropic"));
    file.base_url = Some("http://h".to_owned());
    file.max_tokens = Some(7);
    let mut options = args(Provider::Ollama);
    options.model = Some("llama3.2".to_owned());
    let config = resolve(&options, &file, &nothing).unwrap();
    assert_eq!(
        (config.provider, &*config.model),
        (Provider::Ollama, "llama3.2")
    );
    assert_eq!(
        (&*config.base_url, config.max_tokens),
        ("http://127.0.0.1:11434", 7)
    );
    assert!(config.key.is_none());
    let place = "llama3.2 of Ollama at http://127.0.0.1:11434";
    assert_eq!(config.place(), place);
    let config = config.with_base_url("https://ann:secret@h:1/v1?key=x");
    assert_eq!(config.place(), "llama3.2 of Ollama at https://h:1");
}

#[test]
fn the_scripted_model_needs_nothing() {
    let config = resolve(&ModelArgs::default(), &ModelArgs::default(), &nothing).unwrap();
    assert_eq!(config.model, "scripted");
    let scripted = Scripted::default().with_commands(true);
    let model = config.build(scripted).unwrap();
    assert!(format!("{model:?}").contains("commands: true"));
}

#[test]
fn a_temperature_has_its_limits() {
    assert_eq!((temperature("0"), temperature("1.5")), (Ok(0.0), Ok(1.5)));
    for wrong in ["-1", "2.1", "nan", "warm", ""] {
        assert!(temperature(wrong).is_err(), "{wrong}");
    }
}
