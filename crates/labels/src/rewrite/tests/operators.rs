//! Each operator on each kind of label. Ids 1 to 5 of `v`; births 1980-1990, NULL, 1970-1980, 1975, `*`.

use super::*;

#[tokio::test]
async fn comparisons_with_literals_ask_what_could_be() {
    let context = patients();
    for (predicate, expected) in [
        ("birth = 1984", "1 5"),
        ("birth = '1984'", "1 5"),
        ("1984 = birth", "1 5"),
        ("birth = 1980 + 4", "1 5"),
        ("avlike(birth, 1984)", "1 5"),
        ("NOT avlike(birth, 1975)", "1 3 5"),
        ("birth <> 1975", "1 3 5"),
        ("birth <> 1984", "1 3 4 5"),
        ("birth < 1979", "3 4 5"),
        ("1979 > birth", "3 4 5"),
        ("birth <= 1975", "3 4 5"),
        ("birth > 1984", "1 5"),
        ("birth >= 1989", ""),
        ("zipcode = '88512'", "1 2 3"),
        ("zipcode = 88512", "1 2 3"),
        ("zipcode = '885**'", ""),
        ("zipcode > '89000'", "3 4 5"),
        ("CAST(zipcode AS TEXT) = '88512'", "1 2 3"),
        ("age = 25", "1 2 3"),
        ("age > 29", "3 4"),
        ("born = DATE '1985-03-01'", "1 4 5"),
        ("born < '1980-01-01'", "3 4 5"),
        ("born >= DATE '1979-05-04' + INTERVAL '1 day'", "1 3 4 5"),
        ("birth = NULL", ""),
        ("NOT (birth = NULL)", ""),
    ] {
        assert_ids(&context, predicate, expected).await;
    }
}

#[tokio::test]
async fn lists_ranges_and_patterns_are_one_atom_each() {
    let context = patients();
    for (predicate, expected) in [
        ("birth IN (1984, 1975)", "1 3 4 5"),
        ("birth IN (1984, NULL)", "1 5"),
        ("birth IN (NULL)", ""),
        ("birth NOT IN (1975)", "1 3 5"),
        ("birth NOT IN (1975, NULL)", ""),
        ("birth NOT IN (1984, 1988)", "3 4 5"),
        ("NOT (birth NOT IN (1984))", "1 5"),
        ("birth BETWEEN 1976 AND 1978", "3 5"),
        ("birth BETWEEN 1980 AND 1983", ""),
        ("birth >= 1980 AND birth <= 1983", "5"),
        ("birth NOT BETWEEN 1970 AND 1980", "1 5"),
        ("birth NOT BETWEEN NULL AND 1980", "1 5"),
        ("birth BETWEEN NULL AND 1980", ""),
        ("birth NOT BETWEEN 1980 AND 1970", "1 3 4 5"),
        ("zipcode LIKE '885%'", "1 2 3"),
        ("zipcode NOT LIKE '885%'", "3 4 5"),
        ("zipcode LIKE NULL", ""),
        ("zipcode ILIKE '8854_'", "1 3"),
        ("NOT (zipcode LIKE '%12')", "1 3 4 5"),
        ("birth LIKE '198%'", "1 5"),
        ("born BETWEEN '1989-12-31' AND '1990-01-01'", "1 4 5"),
    ] {
        assert_ids(&context, predicate, expected).await;
    }
}

#[tokio::test]
async fn null_is_a_masked_cell_or_what_everything_may_hide() {
    let context = patients();
    for (predicate, expected) in [
        ("birth IS NULL", "2 5"),
        ("birth IS NOT NULL", "1 3 4 5"),
        ("NOT (birth IS NULL)", "1 3 4 5"),
        ("age IS NULL", "3 5"),
        ("birth IS DISTINCT FROM 1975", "1 2 3 5"),
        ("birth IS NOT DISTINCT FROM 1975", "3 4 5"),
        ("birth IS NOT DISTINCT FROM NULL", "2 5"),
        ("birth IS DISTINCT FROM NULL", "1 3 4 5"),
        ("NOT (birth IS DISTINCT FROM 1975)", "3 4 5"),
        ("(birth = 1984) IS TRUE", "1 5"),
        ("(birth = 1975) IS FALSE", "1 3 5"),
    ] {
        assert_ids(&context, predicate, expected).await;
    }
}

#[tokio::test]
async fn negation_goes_to_the_atoms_first() {
    let context = patients();
    for (predicate, expected) in [
        ("birth = 1984 AND birth <> 1984", "1 5"),
        ("NOT (birth = 1984 AND zipcode = '88512')", "1 3 4 5"),
        ("NOT (birth = 1984 OR zipcode = '88512')", "1 3 4 5"),
        ("NOT (NOT (birth = 1984))", "1 5"),
        ("NOT (birth = 1975 OR ward = 'a')", "5"),
        ("NOT (ward = 'a')", "2 5"),
        ("NOT (birth = 1984 AND ward = 'a')", "1 2 3 4 5"),
        ("(birth = 1984 OR ward = 'b') AND NOT (age > 30)", "1 2"),
    ] {
        assert_ids(&context, predicate, expected).await;
    }
}

#[tokio::test]
async fn columns_are_compared_with_columns() {
    let context = patients();
    for (sql, expected) in [
        ("SELECT v.id, t.id FROM v, t WHERE v.birth = t.year", "1|100 3|200 4|200 5|100 5|200"),
        ("SELECT v.id, t.id FROM v, t WHERE t.year > v.birth AND t.id = 200 AND v.id = 3", ""),
        ("SELECT v.id, t.id FROM v, t WHERE t.year >= v.birth AND t.id = 200 AND v.id = 3", "3|200"),
        ("SELECT v.id, w.id FROM v, w WHERE v.age < w.age", "1|10 1|20 2|10 2|20 3|10 3|20 4|10 4|20"),
        ("SELECT v.id, w.id FROM v, w WHERE NOT (v.age <> w.age)", "1|10 2|10 3|10 3|20 4|10"),
        ("SELECT id FROM v WHERE birth = age", "3"),
        ("SELECT id FROM v WHERE zipcode = zipcode AND zipcode <> zipcode", "1 3 4 5"),
        ("SELECT id FROM v WHERE birth > (SELECT max(year) FROM t)", "1 5"),
        ("SELECT id FROM v WHERE age = (SELECT age FROM w WHERE id = 10)", "1 2 3 4"),
    ] {
        assert_rows(&context, sql, expected).await;
    }
}
