//! The gate by itself: what changes between `ONBOARD_REQUIRED` and `ONBOARD_SUBMIT`.

use crate::auth::{Address, AddressList, AuthError, Draft, InviteCodes, Signer};
use crate::frame::{Connect, OnboardSubmit};
use crate::limits::MAX_ADDRESSES;
use crate::trust::{AccessControl, Admission, ClientLevel, Onboarding, TrustLevel};

const NOW: f64 = 1_795_293_457.0;

fn host_key() -> Signer {
    Signer::from_seed(&[1; 32])
}

fn client_key() -> Signer {
    Signer::from_seed(&[2; 32])
}

fn us() -> Address {
    *client_key().address()
}

fn access() -> AccessControl {
    let access =
        AccessControl::new(*host_key().address(), TrustLevel::Careful).require_signatures();
    access.with_invites(InviteCodes::new(["red onion"]).unwrap())
}

fn paying() -> AccessControl {
    access().with_payment(10.0, None)
}

fn frame(key: &Signer, draft: &Draft) -> crate::frame::Signed {
    key.sign_payload(draft).unwrap()
}

/// A stranger, who is asked to go through onboarding.
fn at_the_gate(access: &mut AccessControl) {
    let connect = Connect::new(frame(&client_key(), &Draft::new(NOW)));
    assert!(matches!(
        access.admit(&connect, NOW),
        Ok(Admission::Gate { .. })
    ));
}

fn offer(access: &mut AccessControl, code: &str) -> Result<Onboarding, AuthError> {
    offer_at(access, code, NOW)
}

fn offer_at(access: &mut AccessControl, code: &str, now: f64) -> Result<Onboarding, AuthError> {
    let draft = Draft::new(now).with("invite_code", code);
    access.onboard(
        &us(),
        &OnboardSubmit::from(frame(&client_key(), &draft)),
        now,
    )
}

/// The level that the caller is told, and the one that it has.
fn welcomed(
    access: &AccessControl,
    outcome: &Result<Onboarding, AuthError>,
) -> (String, ClientLevel) {
    let Ok(Onboarding::Welcome(success)) = outcome else {
        panic!("{outcome:?}");
    };
    (
        success.level.clone().unwrap_or_default().to_string(),
        access.book().level_of(&us()),
    )
}

#[test]
fn a_caller_blocked_during_onboarding_stays_out() {
    for has_contact in [false, true] {
        let mut access = paying();
        at_the_gate(&mut access);
        if has_contact {
            access.book_mut().promote(&us()).unwrap();
        }
        access.book_mut().block(&us()).unwrap();
        for code in ["red onion", "wrong"] {
            assert_eq!(offer(&mut access, code), Err(AuthError::Blocked));
        }
        // Also while its payment is being checked.
        assert_eq!(access.paid(&us()), Err(AuthError::Blocked));
        assert_eq!(access.book().level_of(&us()), ClientLevel::Blocked);
        access.book_mut().unblock(&us());
        let level = match has_contact {
            true => ClientLevel::Contact,
            false => ClientLevel::Stranger,
        };
        assert_eq!(access.book().level_of(&us()), level);
    }
}

#[test]
fn a_caller_blocked_by_a_pattern_during_onboarding_stays_out() {
    let mut access = access();
    at_the_gate(&mut access);
    access.book_mut().blocked = AddressList::parse(&us().to_string().replace("0x", "*"));
    assert_eq!(offer(&mut access, "red onion"), Err(AuthError::Blocked));
}

#[test]
fn a_caller_promoted_during_onboarding_keeps_its_level() {
    for (promotions, level) in [(1, ClientLevel::Contact), (2, ClientLevel::Whitelisted)] {
        let mut access = paying();
        at_the_gate(&mut access);
        for _ in 0..promotions {
            access.book_mut().promote(&us()).unwrap();
        }
        let expected = (level.name().to_owned(), level);
        let outcome = offer(&mut access, "red onion");
        assert_eq!(welcomed(&access, &outcome), expected);
        let outcome = access.paid(&us());
        assert_eq!(welcomed(&access, &outcome), expected);
    }
}

#[test]
fn a_caller_demoted_during_onboarding_becomes_a_contact_again() {
    let mut access = access();
    at_the_gate(&mut access);
    access.book_mut().promote(&us()).unwrap();
    access.book_mut().demote(&us()).unwrap();
    let outcome = offer(&mut access, "red onion");
    let expected = ("contact".to_owned(), ClientLevel::Contact);
    assert_eq!(welcomed(&access, &outcome), expected);
}

#[test]
fn an_invite_code_removed_during_onboarding_does_not_count() {
    let mut access = access();
    at_the_gate(&mut access);
    let mut access = access.with_invites(InviteCodes::default());
    let refused = Err(AuthError::InvalidInviteCode);
    assert_eq!(offer(&mut access, "red onion"), refused);
    assert_eq!(access.book().level_of(&us()), ClientLevel::Stranger);
}

#[test]
fn a_list_that_fills_during_onboarding_admits_and_drops_no_caller() {
    let mut access = access();
    at_the_gate(&mut access);
    let many = (0..MAX_ADDRESSES as u64).map(|number| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Address::from_bytes(bytes)
    });
    for address in many {
        access.book_mut().contacts.insert(address).unwrap();
    }
    let full = Err(AuthError::DeniedByRules);
    assert_eq!(offer(&mut access, "red onion"), full);
    assert_eq!(access.paid(&us()), full);
    assert_eq!(access.book().level_of(&us()), ClientLevel::Stranger);
    // Nor does an invitation in a CONNECT.
    let draft = Draft::new(NOW).with("invite_code", "red onion");
    let connect = Connect::new(frame(&client_key(), &draft));
    assert!(matches!(
        access.admit(&connect, NOW),
        Ok(Admission::Gate { .. })
    ));
    // Who is in keeps its place, and makes one.
    let first = Address::from_bytes([0; 32]);
    assert_eq!(access.book().level_of(&first), ClientLevel::Contact);
    access.book_mut().demote(&first).unwrap();
    let outcome = offer_at(&mut access, "red onion", NOW + 1.0);
    assert_eq!(welcomed(&access, &outcome).1, ClientLevel::Contact);
}

#[test]
fn a_whitelisted_caller_is_demoted_step_by_step() {
    let mut book = access().book().clone();
    book.whitelist.insert(us()).unwrap();
    assert_eq!(book.demote(&us()), Ok(ClientLevel::Contact));
    assert!(book.contacts.contains(&us()) && !book.whitelist.contains(&us()));
    assert_eq!(book.demote(&us()), Ok(ClientLevel::Stranger));
    assert!(!book.contacts.contains(&us()));
    assert_eq!(book.demote(&us()), Ok(ClientLevel::Stranger));
}
