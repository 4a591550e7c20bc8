//! [`IdentifierKind`]: recognizes identifiers by their format and check digits, not by the name of the column.
//!
//! A random number passes a check once in ten to once in ninety-seven times. So if nearly all distinct texts of a
//! column pass, that is no accident.

use kohort_model::Texts;

/// With fewer distinct texts than this, all may pass a check by chance.
const FEWEST: usize = 10;

/// The share of distinct texts that must pass, because a few may be mistyped.
const NEARLY_ALL: f64 = 0.98;

/// A kind of identifier that names somebody outright.
#[derive(Clone, Copy, Debug)]
pub struct IdentifierKind {
    /// The name with its article, such as `an IBAN`.
    pub name: &'static str,
    is_one: fn(&str) -> bool,
}

const KINDS: &[IdentifierKind] = &[
    kind("an e-mail address", is_email),
    kind("a UUID", is_uuid),
    kind("an IP address", is_ip_address),
    kind("an IBAN", is_iban),
    kind("a card or account number with a Luhn check digit", |text| is_digits(text, 12..=19, luhn)),
    kind("a Swiss AHV number", |text| is_digits(text, 13..=13, |digits| digits.starts_with(&[7, 5, 6]) && ean(digits))),
    kind("a French social security number", |text| is_digits(text, 15..=15, french)),
    kind("a Belgian national number", |text| is_digits(text, 11..=11, belgian)),
    kind("a Polish PESEL", |text| is_digits(text, 11..=11, pesel)),
    kind("a German tax number or Croatian OIB", |text| is_digits(text, 11..=11, mod_11_10)),
    kind("a Brazilian CPF", |text| is_digits(text, 11..=11, cpf)),
    kind("an NHS number", |text| is_digits(text, 10..=10, nhs)),
    kind("a Nordic personal number", is_personal_number),
    kind("a Dutch BSN", |text| is_digits(text, 9..=9, bsn)),
    kind("a German health insurance number", is_health_insurance_number),
    kind("a Finnish personal number", is_hetu),
    kind("a Spanish DNI or NIE", is_dni),
    kind("an Italian codice fiscale", is_codice_fiscale),
    kind("a US social security number", is_ssn),
    kind("a number with ISO 7064 check digits", |text| is_digits(text, 8..=32, |digits| remainder(digits, 97) == 1)),
];

const fn kind(name: &'static str, is_one: fn(&str) -> bool) -> IdentifierKind {
    IdentifierKind { name, is_one }
}

impl IdentifierKind {
    /// The kind of identifier that nearly all of these distinct texts are, if any.
    pub fn of(texts: &Texts) -> Option<IdentifierKind> {
        if texts.len() < FEWEST {
            return None;
        }
        // A sample rules out most kinds at little cost.
        let first: Vec<&str> = texts.iter().take(FEWEST).collect();
        let could_be = |kind: &&IdentifierKind| first.iter().filter(|text| !(kind.is_one)(text)).count() <= 1;
        let is_nearly_all = |kind: &&IdentifierKind| {
            let n = texts.iter().filter(|text| (kind.is_one)(text)).count();
            n as f64 >= NEARLY_ALL * texts.len() as f64
        };
        KINDS.iter().filter(could_be).find(is_nearly_all).copied()
    }
}

/// Whether a text consists of that many digits, possibly with spaces, dots, dashes and slashes, that pass a check.
fn is_digits(text: &str, n_digits: std::ops::RangeInclusive<usize>, check: impl Fn(&[u32]) -> bool) -> bool {
    let mut digits = Vec::with_capacity(text.len());
    for character in text.chars() {
        match character.to_digit(10) {
            Some(digit) => digits.push(digit),
            None if matches!(character, ' ' | '-' | '.' | '/') => {}
            None => return false,
        }
    }
    // A row of zeros passes every check.
    n_digits.contains(&digits.len()) && digits.iter().any(|&digit| digit != 0) && check(&digits)
}

fn remainder(digits: &[u32], of: u64) -> u64 {
    digits.iter().fold(0, |rest, &digit| (rest * 10 + u64::from(digit)) % of)
}

fn weighted(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

fn luhn(digits: &[u32]) -> bool {
    let doubled = |digit: u32| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let of = |(place, &digit): (usize, &u32)| if place % 2 == 1 { doubled(digit) } else { digit };
    digits.iter().rev().enumerate().map(of).sum::<u32>() % 10 == 0
}

fn ean(digits: &[u32]) -> bool {
    let of = |(place, &digit): (usize, &u32)| if place % 2 == 1 { 3 * digit } else { digit };
    digits.iter().rev().enumerate().map(of).sum::<u32>() % 10 == 0
}

fn french(digits: &[u32]) -> bool {
    (1..=2).contains(&digits[0]) && remainder(&digits[13..], 1000) == 97 - remainder(&digits[..13], 97)
}

fn belgian(digits: &[u32]) -> bool {
    let check = remainder(&digits[9..], 1000);
    let born_later: Vec<u32> = std::iter::once(2).chain(digits[..9].iter().copied()).collect();
    check == 97 - remainder(&digits[..9], 97) || check == 97 - remainder(&born_later, 97)
}

fn pesel(digits: &[u32]) -> bool {
    (weighted(digits, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) + digits[10]).is_multiple_of(10)
}

/// Whether the check digit is right by ISO 7064 MOD 11,10.
fn mod_11_10(digits: &[u32]) -> bool {
    let product = digits[..digits.len() - 1].iter().fold(10, |product, digit| {
        let sum = (digit + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10 == digits[digits.len() - 1]
}

fn cpf(digits: &[u32]) -> bool {
    let check = |n: usize| {
        let sum: u32 = digits[..n].iter().zip((2..=n as u32 + 1).rev()).map(|(digit, weight)| digit * weight).sum();
        sum * 10 % 11 % 10
    };
    check(9) == digits[9] && check(10) == digits[10]
}

fn nhs(digits: &[u32]) -> bool {
    (11 - weighted(digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11 == digits[9]
}

fn bsn(digits: &[u32]) -> bool {
    let sum = weighted(digits, &[9, 8, 7, 6, 5, 4, 3, 2]);
    sum % 11 == digits[8]
}

/// Swedish and Norwegian spellings: six digits of the date of birth, and four more that end with a Luhn check digit.
fn is_personal_number(text: &str) -> bool {
    let text = text.replace('+', "-");
    let has_date = |digits: &[u32]| {
        let (month, day) = (digits[2] * 10 + digits[3], digits[4] * 10 + digits[5]);
        (1..=12).contains(&month) && (1..=31).contains(&day)
    };
    is_digits(&text, 10..=10, |digits| has_date(digits) && luhn(digits))
        || is_digits(&text, 12..=12, |digits| has_date(&digits[2..]) && luhn(&digits[2..]))
}

fn is_health_insurance_number(text: &str) -> bool {
    let Some(letter) = text.chars().next().filter(char::is_ascii_uppercase) else { return false };
    let number = letter as u32 - 'A' as u32 + 1;
    is_digits(&text[1..], 9..=9, |digits| {
        let all = [&[number / 10, number % 10], &digits[..8]].concat();
        let of = |(place, &digit): (usize, &u32)| match place % 2 {
            0 => digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        };
        all.iter().enumerate().map(of).sum::<u32>() % 10 == digits[8]
    })
}

fn is_hetu(text: &str) -> bool {
    const CHECKS: &[u8] = b"0123456789ABCDEFHJKLMNPRSTUVWXY";
    let bytes = text.as_bytes();
    if bytes.len() != 11 || !matches!(bytes[6], b'+' | b'-' | b'A'..=b'F' | b'U'..=b'Y') {
        return false;
    }
    let digits: Option<Vec<u32>> =
        bytes[..6].iter().chain(&bytes[7..10]).map(|&byte| char::from(byte).to_digit(10)).collect();
    digits.is_some_and(|digits| CHECKS[remainder(&digits, 31) as usize] == bytes[10])
}

fn is_dni(text: &str) -> bool {
    const CHECKS: &[u8] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let text = text.to_ascii_uppercase().replace(['-', ' '], "");
    let number = match text.as_bytes().first() {
        Some(letter @ b'X'..=b'Z') => format!("{}{}", letter - b'X', &text[1..]),
        _ => text,
    };
    if number.len() != 9 || !number.is_ascii() {
        return false;
    }
    let check = number.as_bytes()[8];
    is_digits(&number[..8], 8..=8, |digits| CHECKS[remainder(digits, 23) as usize] == check)
}

fn is_codice_fiscale(text: &str) -> bool {
    const SHAPE: &[u8] = b"aaaaaa00a00a000a";
    text.len() == SHAPE.len()
        && text.bytes().zip(SHAPE).all(|(byte, shape)| match shape {
            b'a' => byte.is_ascii_alphabetic(),
            _ => byte.is_ascii_digit(),
        })
}

fn is_ssn(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([3, 2, 4]) && parts.concat().bytes().all(|byte| byte.is_ascii_digit())
}

fn is_email(text: &str) -> bool {
    let Some((name, domain)) = text.split_once('@') else { return false };
    !name.is_empty() && !domain.contains('@') && domain.contains('.') && !text.contains(char::is_whitespace)
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.trim_matches(['{', '}']).split('-').collect();
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex)
}

fn is_ip_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

fn is_iban(text: &str) -> bool {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_uppercase();
    let bytes = text.as_bytes();
    if !(15..=34).contains(&bytes.len()) || !bytes.iter().all(u8::is_ascii_alphanumeric) {
        return false;
    }
    if !bytes[..2].iter().all(u8::is_ascii_alphabetic) || !bytes[2..4].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let moved = bytes[4..].iter().chain(&bytes[..4]);
    let rest = moved.fold(0u64, |rest, &byte| match byte {
        b'0'..=b'9' => (rest * 10 + u64::from(byte - b'0')) % 97,
        _ => (rest * 100 + u64::from(byte - b'A') + 10) % 97,
    });
    rest == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers_pass_their_check_and_no_other_digit_does() {
        let examples: [(&str, &str); 14] = [
            ("an IBAN", "DE89 3704 0044 0532 0130 00"),
            ("a card or account number with a Luhn check digit", "4111111111111111"),
            ("a Swiss AHV number", "756.9217.0769.85"),
            ("a French social security number", "2 55 08 14 168 025 38"),
            ("a Belgian national number", "85.07.30-033 28"),
            ("a Polish PESEL", "44051401359"),
            ("a German tax number or Croatian OIB", "86095742719"),
            ("a Brazilian CPF", "529.982.247-25"),
            ("an NHS number", "943 476 5919"),
            ("a Nordic personal number", "811228-9874"),
            ("a Dutch BSN", "111222333"),
            ("a German health insurance number", "A123456780"),
            ("a Finnish personal number", "131052-308T"),
            ("a Spanish DNI or NIE", "12345678Z"),
        ];
        for (name, text) in examples {
            let kind = KINDS.iter().find(|kind| kind.name == name).unwrap();
            assert!((kind.is_one)(text), "{name}: {text}");
            let position = text.rfind(|c: char| c.is_ascii_digit()).unwrap();
            let others = (b'0'..=b'9').map(char::from).filter(|&digit| !text[position..].starts_with(digit));
            let wrong = others.filter(|digit| {
                let mut text = text.to_owned();
                text.replace_range(position..=position, &digit.to_string());
                (kind.is_one)(&text)
            });
            assert!(wrong.count() <= 1, "{name} checks nothing");
        }
    }

    #[test]
    fn ordinary_columns_are_no_identifiers() {
        let of = |texts: Vec<String>| IdentifierKind::of(&texts.iter().collect::<Texts>()).map(|kind| kind.name);
        assert_eq!(of((0..5000).map(|n| (10_000 + 7 * n).to_string()).collect()), None);
        assert_eq!(of((0..5000).map(|n| (1_000_000_000u64 + 7919 * n).to_string()).collect()), None);
        assert_eq!(of((1..28).map(|day| format!("1984-03-{day:02}")).collect()), None);
        assert_eq!(of((0..30).map(|n| format!("{n}@example.org")).collect()), Some("an e-mail address"));
    }
}
