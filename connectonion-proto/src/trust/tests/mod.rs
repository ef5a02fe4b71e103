//! Lists, standings and decisions.

mod gate;
mod state;

use proptest::prelude::*;

use super::*;
use crate::auth::{Address, AddressList, AuthError};
use crate::limits::MAX_ADDRESSES;

fn address(byte: u8) -> Address {
    Address::from_bytes([byte; 32])
}

const fn spec(level: TrustLevel) -> TrustPolicy {
    TrustPolicy {
        level,
        needs_signatures: false,
    }
}

const fn denied() -> Result<bool, AuthError> {
    Err(AuthError::DeniedByRules)
}

#[test]
fn a_list_has_addresses_in_any_spelling_patterns_and_comments() {
    let one = address(0xab).to_string();
    let text = format!(
        "\u{feff}# friends\r\n\n{}\n  {}  # the other one\n0xcdCD*\n#{}\n",
        one.to_uppercase(),
        address(2).to_string().trim_start_matches("0x"),
        address(3),
    );
    let list = AddressList::parse(&text);
    for (byte, expected) in [
        (0xab, true),
        (2, true),
        (3, false),
        (0xcd, true),
        (4, false),
    ] {
        assert_eq!(list.contains(&address(byte)), expected, "{byte}");
    }
    assert_eq!(list.unknown_lines().count(), 0);
    assert_eq!(
        format!("{list:?}"),
        "AddressList { addresses: 2, patterns: 1, .. }"
    );
}

#[test]
fn a_pattern_matches_its_text_without_the_stars() {
    let caller = Address::parse(&format!("0x3d40{}", "0".repeat(60))).unwrap();
    for (pattern, expected) in [
        ("*", true),
        ("0x3d40*", true),
        ("0X3D40*", true),
        ("*d400*", true),
        ("0x*3d4", true),
        ("0x3d41*", false),
        ("*x3d40*1*", false),
    ] {
        let list = AddressList::parse(pattern);
        assert_eq!(list.contains(&caller), expected, "{pattern}");
    }
}

#[test]
fn lines_without_a_match_are_reported() {
    let text = format!("# a\nsome-name\n0x12\n{}\n*\n", address(1));
    let list = AddressList::parse(&text);
    let unknown: Vec<_> = list.unknown_lines().collect();
    assert_eq!(unknown, [(2, "some-name"), (3, "0x12")]);
    assert_eq!(list.to_string(), text);
}

#[test]
fn a_list_is_changed_and_written_with_its_comments() {
    let mut list = AddressList::parse(&format!("# a\n{} # b\n", address(1)));
    assert_eq!(list.insert(address(2)), Ok(true));
    assert_eq!(list.insert(address(1)), Ok(false));
    let written = format!("# a\n{} # b\n{}\n", address(1), address(2));
    assert_eq!(list.to_string(), written);
    assert!(list.remove(&address(1)) && !list.remove(&address(1)));
    assert!(!list.contains(&address(1)));
    assert_eq!(list.to_string(), format!("# a\n{}\n", address(2)));
    let mut open = AddressList::parse("*");
    assert_eq!(open.insert(address(1)), Ok(false), "a pattern has it");
    assert!(!open.remove(&address(1)) && open.contains(&address(1)));
}

#[test]
fn a_list_is_bounded() {
    let many = (0..MAX_ADDRESSES).map(|number| {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        Address::from_bytes(key)
    });
    let mut list = AddressList::default();
    for address in many {
        list.insert(address).unwrap();
    }
    let error = list.insert(address(9)).unwrap_err();
    assert_eq!(error.to_string(), "invalid list: it takes 100000 addresses");
    assert!(list.remove(&address(0)));
    assert_eq!(list.insert(address(9)), Ok(true));
}

#[test]
fn blocked_callers_are_refused_whatever_else_applies() {
    let mut book = TrustBook::default();
    let caller = address(1);
    assert_eq!(book.level_of(&caller), ClientLevel::Stranger);
    assert_eq!(book.promote(&caller), Ok(ClientLevel::Contact));
    assert_eq!(book.promote(&caller), Ok(ClientLevel::Whitelisted));
    assert_eq!(book.promote(&caller), Ok(ClientLevel::Whitelisted));
    book.admins.insert(caller).unwrap();
    assert!(book.is_admin(&caller));
    assert_eq!(book.block(&caller), Ok(true));
    assert_eq!(book.block(&caller), Ok(false));
    assert_eq!(book.level_of(&caller), ClientLevel::Blocked);
    assert!(!book.is_admin(&caller));
    assert_eq!(book.promote(&caller), Ok(ClientLevel::Blocked));
    assert_eq!(book.demote(&caller), Ok(ClientLevel::Blocked));
    assert!(book.unblock(&caller));
    assert_eq!(book.level_of(&caller), ClientLevel::Whitelisted);
    assert_eq!(book.demote(&caller), Ok(ClientLevel::Contact));
    assert_eq!(book.demote(&caller), Ok(ClientLevel::Stranger));
    assert_eq!(book.demote(&caller), Ok(ClientLevel::Stranger));
}

#[test]
fn a_policy_decides_by_its_level() {
    use ClientLevel::{Blocked, Contact, Stranger, Whitelisted};
    use TrustLevel::{Careful, Open, Strict};

    for (level, standing, expected) in [
        (Open, Stranger, Ok(true)),
        (Open, Contact, Ok(true)),
        (Open, Whitelisted, Ok(true)),
        (Open, Blocked, denied()),
        (Careful, Stranger, Ok(false)),
        (Careful, Contact, Ok(true)),
        (Careful, Whitelisted, Ok(true)),
        (Careful, Blocked, denied()),
        (Strict, Stranger, denied()),
        (Strict, Contact, denied()),
        (Strict, Whitelisted, Ok(true)),
        (Strict, Blocked, denied()),
    ] {
        for needs_signatures in [false, true] {
            let policy = TrustPolicy {
                level,
                needs_signatures,
            };
            assert_eq!(
                policy.decide(standing, true),
                expected,
                "{level:?} {standing:?}"
            );
        }
    }
}

#[test]
fn unsigned_callers_are_decided_by_the_table() {
    for (level, expected) in [
        (TrustLevel::Open, Ok(false)),
        (TrustLevel::Careful, Ok(true)),
        (TrustLevel::Strict, Err(AuthError::SignedRequestRequired)),
    ] {
        let policy = spec(level);
        assert_eq!(policy.decide_unsigned(false), expected, "{level:?}");
        let policy = TrustPolicy {
            needs_signatures: true,
            ..policy
        };
        let required = Err(AuthError::SignedRequestRequired);
        assert_eq!(policy.decide_unsigned(false), required, "{level:?}");
    }
}

#[test]
fn leaving_out_the_signature_does_not_bypass_onboarding() {
    let policy = spec(TrustLevel::Careful);
    let required = Err(AuthError::SignedRequestRequired);
    assert_eq!(policy.decide_unsigned(true), required);
}

#[test]
fn a_careful_host_without_onboarding_refuses_strangers_if_signatures_are_required() {
    let policy = spec(TrustLevel::Careful);
    assert_eq!(policy.decide(ClientLevel::Stranger, false), Ok(true));
    let policy = TrustPolicy {
        needs_signatures: true,
        ..policy
    };
    assert_eq!(policy.decide(ClientLevel::Stranger, false), denied());
}

#[test]
fn levels_parse_from_their_names() {
    for level in TrustLevel::ALL {
        assert_eq!(TrustLevel::parse(level.name()), Some(level));
    }
    assert_eq!(TrustLevel::parse(""), None);
}

proptest! {
    #[test]
    fn lists_round_trip(text in "([#*x0-9a-f\n ]|0x){0,40}") {
        let list = AddressList::parse(&text);
        let again = AddressList::parse(&list.to_string());
        for byte in 0..=255 {
            let caller = address(byte);
            prop_assert_eq!(list.contains(&caller), again.contains(&caller));
        }
    }
}
