//! Rules as people write them: `c2s INPUT drop 1/3`.

use std::ops::Range;
use std::time::Duration;

use rpc_core::testing::Side;

use crate::lane::{Chance, Fault, Plan, Rule, When};

/// Most rules of a plan.
const MAX_RULES: usize = 100;
/// The words of all faults.
const FAULTS: &str = "drop, duplicate, delay TIME, delay TIME..TIME, reorder, corrupt MEMBER, \
    truncate [BYTES], half-open, reset, slow BYTES, bandwidth BYTES, close CODE, refuse [STATUS]";

/// Reads a time, such as `50ms`.
pub(crate) type ReadTime = fn(&str) -> Result<Duration, String>;

pub(crate) fn plan(text: &str, duration: ReadTime) -> Result<Plan, String> {
    let lines = text.split([';', '\n']).map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rules = lines.zip(0..).map(|(line, id)| {
        let (when, fault) = rule(line, duration).map_err(|why| format!("{line:?}: {why}"))?;
        Ok(Rule {
            id,
            text: line.to_owned(),
            when,
            fault,
        })
    });
    let rules: Vec<_> = rules.collect::<Result<_, String>>()?;
    match rules.len() {
        0..=MAX_RULES => Ok(Plan(rules)),
        _ => Err(format!("there are more than {MAX_RULES} rules")),
    }
}

fn rule(line: &str, duration: ReadTime) -> Result<(When, Fault), String> {
    let mut words: Vec<_> = line.split_whitespace().collect();
    if let ["at", at, rest @ ..] = &words[..] {
        let mut rest = rest.to_vec();
        let fault = fault(&mut rest, duration)?;
        let fits = matches!(fault, Fault::Reset | Fault::Close(_) | Fault::HalfOpen);
        return match (fits, &rest[..]) {
            (true, []) => Ok((When::At(time(at, duration)?), fault)),
            (true, [word, ..]) => Err(format!("{word:?} is too much")),
            (false, _) => Err("only reset, half-open and close CODE happen at a moment".to_owned()),
        };
    }
    let from = match words.first() {
        Some(&"c2s") => Some(Side::Client),
        Some(&"s2c") => Some(Side::Server),
        _ => None,
    };
    if from.is_some() {
        words.remove(0);
    }
    // The kind may be left out.
    let has_kind = words.first().is_some_and(|word| !is_fault(word));
    let kind = match has_kind {
        true => words.remove(0).to_owned(),
        false => "*".to_owned(),
    };
    let fault = fault(&mut words, duration)?;
    let chance = match words[..] {
        [] => Chance::Always,
        [word] => chance(word)?,
        [_, word, ..] => return Err(format!("{word:?} is too much")),
    };
    Ok((When::Frame { from, kind, chance }, fault))
}

fn is_fault(word: &str) -> bool {
    FAULTS
        .split(", ")
        .any(|fault| fault.split(' ').next() == Some(word))
}

/// Takes a fault and what belongs to it from the words.
fn fault(words: &mut Vec<&str>, duration: ReadTime) -> Result<Fault, String> {
    let unknown = || format!("a fault is missing: {FAULTS}");
    if words.first().is_none_or(|word| !is_fault(word)) {
        return Err(unknown());
    }
    let name = words.remove(0);
    let mut next = |what: &str| match words.is_empty() {
        true => Err(format!("{name} needs {what}")),
        false => Ok(words.remove(0)),
    };
    Ok(match name {
        "drop" => Fault::Drop,
        "duplicate" => Fault::Duplicate,
        "delay" => {
            let word = next("a time, such as 50ms or 50..200ms")?;
            Fault::Delay(range(word, duration)?)
        }
        "reorder" => Fault::Reorder,
        "corrupt" => Fault::Corrupt(next("the name of a member")?.to_owned()),
        "truncate" => Fault::Truncate(number(words)?),
        "half-open" => Fault::HalfOpen,
        "reset" => Fault::Reset,
        "slow" => Fault::Slow(rate(next("bytes a second, such as 10k")?)?),
        "bandwidth" => Fault::Bandwidth(rate(next("bytes a second, such as 10k")?)?),
        "close" => {
            let code = next("a code, such as 1011")?;
            let code = code.parse().ok().filter(|code| matches!(code, 1000..5000));
            Fault::Close(code.ok_or("a code is from 1000 to 4999")?)
        }
        "refuse" => {
            let status = number(words)?.unwrap_or(503);
            let status = u16::try_from(status)
                .ok()
                .filter(|it| matches!(it, 400..600));
            Fault::Refuse(status.ok_or("a status is from 400 to 599")?)
        }
        _ => return Err(unknown()),
    })
}

/// Takes a number, if one comes next.
fn number(words: &mut Vec<&str>) -> Result<Option<usize>, String> {
    let Some(word) = words
        .first()
        .filter(|word| word.bytes().all(|it| it.is_ascii_digit()))
    else {
        return Ok(None);
    };
    let number = word.parse().map_err(|_| format!("{word:?} is too large"))?;
    words.remove(0);
    Ok(Some(number))
}

fn chance(word: &str) -> Result<Chance, String> {
    let wrong = || format!("{word:?} is neither 1/3, nor 25%, nor #2");
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let never = || format!("{word:?} never happens");
    let (some, all) = if let Some(nth) = word.strip_prefix('#') {
        let nth = number(nth)?;
        return (nth > 0).then_some(Chance::Nth(nth)).ok_or_else(never);
    } else if let Some(percent) = word.strip_suffix('%') {
        (number(percent)?, 100)
    } else {
        let (some, all) = word.split_once('/').ok_or_else(wrong)?;
        (number(some)?, number(all)?)
    };
    match some {
        0 => Err(never()),
        _ if some <= all => Ok(Chance::Of(some, all)),
        _ => Err(wrong()),
    }
}

fn time(word: &str, duration: ReadTime) -> Result<Duration, String> {
    let time = duration(word)?;
    match time <= Duration::from_secs(86_400) {
        true => Ok(time),
        false => Err(format!("{word} is more than a day")),
    }
}

fn range(word: &str, duration: ReadTime) -> Result<Range<Duration>, String> {
    let Some((start, end)) = word.split_once("..") else {
        let time = time(word, duration)?;
        return Ok(time..time);
    };
    // The unit stands behind the second one for both.
    let unit = end.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let has_unit = start.ends_with(|c: char| c.is_ascii_alphabetic());
    let start = if has_unit {
        time(start, duration)?
    } else {
        time(&format!("{start}{unit}"), duration)?
    };
    let end = time(end, duration)?;
    match start <= end {
        true => Ok(start..end),
        false => Err(format!("{word:?} ends before it begins")),
    }
}

fn rate(word: &str) -> Result<u64, String> {
    let (digits, factor) = match word.strip_suffix(['k', 'M']) {
        Some(digits) if word.ends_with('k') => (digits, 1000),
        Some(digits) => (digits, 1_000_000),
        None => (word, 1),
    };
    let rate = digits.parse::<u64>().ok().filter(|rate| *rate > 0);
    let rate = rate.and_then(|rate| rate.checked_mul(factor));
    rate.ok_or_else(|| format!("{word:?} is not a number of bytes, such as 500, 10k or 2M"))
}
