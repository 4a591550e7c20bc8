//! [`verify_pseudonyms`], [`find_non_pseudonyms`]: whether the cells of a column are the pseudonyms of the private cells.
//!
//! # Independence
//! Another crate makes pseudonyms with a library's HMAC. Here HMAC is computed from its definition in RFC 2104, and letters are
//! found by dividing a number instead of shifting bits.

use std::collections::HashSet;

use kohort_model::{Column, NULL, PSEUDONYM_ALPHABET, PSEUDONYM_LENGTH};
use sha2::{Digest, Sha256};

use crate::Violation;

/// Verifies the pseudonyms of a private column.
///
/// # Errors
/// If a cell is not the pseudonym of its private cell, or two rows have the same one.
pub fn verify_pseudonyms(private: &Column, changed: &Column, key: &[u8]) -> Result<(), Violation> {
    if changed.ids.len() != private.ids.len() {
        return Err(Violation::ColumnLength {
            column: private.name.clone(),
            n_cells: changed.ids.len() as u64,
            n_rows: private.ids.len() as u64,
        });
    }
    let expected: Vec<String> = private.texts.iter().map(|text| pseudonym(key, text)).collect();
    let is_wrong = |(&private, &changed_id): (&u32, &u32)| match (private, changed_id) {
        (NULL, changed) => changed != NULL,
        (_, NULL) => true,
        (private, id) => changed.texts.get(id) != expected[private as usize],
    };
    let mut wrong = private.ids.iter().zip(&changed.ids).enumerate().filter(|(_, pair)| is_wrong(*pair));
    if let Some((row, _)) = wrong.next() {
        let (n, first_row) = (wrong.count() as u64 + 1, row as u64 + 1);
        return Err(Violation::WrongTransform { column: private.name.clone(), n, first_row });
    }
    find_non_pseudonyms(changed).map_or(Ok(()), Err)
}

/// Cells of a released column that can't be pseudonyms, or that two rows share, which links them.
pub fn find_non_pseudonyms(released: &Column) -> Option<Violation> {
    let has_form = |text: &str| {
        text.chars().count() == PSEUDONYM_LENGTH && text.chars().all(|letter| PSEUDONYM_ALPHABET.contains(letter))
    };
    let mut met = HashSet::new();
    let mut wrong = released.ids.iter().enumerate().filter(|&(_, &id)| {
        id != NULL && {
            let text = released.texts.get(id);
            !has_form(text) || !met.insert(text)
        }
    });
    let (row, _) = wrong.next()?;
    let (n, first_row) = (wrong.count() as u64 + 1, row as u64 + 1);
    Some(Violation::NoPseudonym { column: released.name.clone(), n, first_row })
}

/// The pseudonym of a text.
fn pseudonym(key: &[u8], text: &str) -> String {
    let code = hmac(key, text.as_bytes());
    // 16 letters of 5 bits are the first 10 bytes.
    let mut number = code[..10].iter().fold(0_u128, |number, &byte| number * 256 + u128::from(byte));
    let alphabet: Vec<char> = PSEUDONYM_ALPHABET.chars().collect();
    let mut letters: Vec<char> = Vec::new();
    for _ in 0..PSEUDONYM_LENGTH {
        letters.push(alphabet[(number % 32) as usize]);
        number /= 32;
    }
    letters.iter().rev().collect()
}

/// HMAC-SHA-256: `H(K xor opad, H(K xor ipad, text))`, where a key longer than a block is hashed first.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 64;
    let mut block = if key.len() > BLOCK { Sha256::digest(key).to_vec() } else { key.to_vec() };
    block.resize(BLOCK, 0);
    let padded = |pad: u8| block.iter().map(|byte| byte ^ pad).collect::<Vec<u8>>();
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use kohort_model::Role;

    use super::*;

    fn column(cells: &[Option<&str>]) -> Column {
        Column::from_cells("id", Role::Plain, cells.iter().copied())
    }

    fn hexadecimal(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn codes_are_those_of_rfc_4231() {
        let code = hmac(&[0x0b; 20], b"Hi There");
        assert_eq!(hexadecimal(&code), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        let code = hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First");
        assert_eq!(hexadecimal(&code), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn every_mutation_of_pseudonyms_is_rejected() {
        let key = [9; 40];
        let private = column(&[Some("17"), None, Some("18"), Some("")]);
        let texts: Vec<Option<String>> =
            (0..4).map(|row| private.cell(row).map(|text| pseudonym(&key, text))).collect();
        let cells: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
        assert_eq!(verify_pseudonyms(&private, &column(&cells), &key), Ok(()));
        assert!(verify_pseudonyms(&private, &column(&cells), &[8; 40]).is_err());
        let others = cells.iter().copied().chain([Some("17"), Some("aaaaaaaaaaaaaaaa"), None]);
        for other in others {
            for row in 0..cells.len() {
                let mut cells = cells.clone();
                if std::mem::replace(&mut cells[row], other) != other {
                    assert!(verify_pseudonyms(&private, &column(&cells), &key).is_err(), "{row} {other:?}");
                }
            }
        }
    }

    #[test]
    fn released_cells_of_another_form_and_shared_ones_are_found() {
        let found = |cells: &[Option<&str>]| find_non_pseudonyms(&column(cells));
        let (one, other) = (Some("abcdefghijkmnpqr"), Some("stuvwxyz23456789"));
        assert_eq!(found(&[one, other, None, None]), None);
        let wrong = |n, first_row| Some(Violation::NoPseudonym { column: "id".to_owned(), n, first_row });
        assert_eq!(found(&[one, other, one]), wrong(1, 3));
        assert_eq!(found(&[one, Some("17"), Some("abcdefghijklmnop")]), wrong(2, 2));
    }
}
