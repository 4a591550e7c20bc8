//! The patients of the query-processing paper's figure 8, over the wire.

use crate::client::connect;
use crate::fixture::{ANALYST, as_owner, serve};

const PATIENTS: &str = include_str!("../../../sql/tests/views/patients.sql");
const VIEW: &str = "
CREATE ANONYMIZATION_VIEW patient_aview ON SELECT name, birth, zipcode, disease FROM patient
  WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (birth DGH_NAME birth, zipcode DGH_NAME zip)
  ANONYMIZATION_SENSITIVE_ATTR (disease DGH_NAME disease)
  name REFERENCES choices (k, sa_level) DISCLOSURE ROW;
GRANT SELECT ON patient_aview TO ann;
GRANT PURPOSE Treatment RECIPIENT Nurse TO ann;
";

#[tokio::test(flavor = "multi_thread")]
async fn the_patients_of_the_paper_are_shown_as_the_paper_shows_them() {
    let served = serve(&format!("{PATIENTS}{VIEW}")).await;
    let mut ann = connect(&served, ANALYST).await;
    let stated = "PURPOSE Treatment RECIPIENT Nurse";
    let shown =
        ann.rows(&format!("SELECT * FROM patient_aview ORDER BY zipcode, disease, birth {stated}")).await.unwrap();
    // See `golden/patients/expected.md`: the paper prints 88*** although 885** is tighter, and P1 and P3 refuse birth.
    let expected = [
        ["NULL", "1970-1980", "*****", "Pneumonia"],
        ["NULL", "1970-1980", "*****", "Viral-disease"],
        ["NULL", "NULL", "*****", "Viral-disease"],
        ["NULL", "1980-1990", "885**", "Indigestion"],
        ["NULL", "NULL", "885**", "Stomach-disease"],
    ];
    assert_eq!(shown, expected);

    // The same query as a prepared statement, with the value of the paper.
    let asked = format!("SELECT zipcode FROM patient_aview WHERE zipcode = $1 {stated}");
    let prepared = ann.client.query(&asked, &[&"88512"]).await.unwrap();
    assert_eq!(prepared.len(), 5, "every label could stand for 88512");
    assert!(
        ann.client
            .query(&format!("SELECT * FROM patient_aview WHERE name = $1 {stated}"), &[&"P1"])
            .await
            .unwrap()
            .is_empty()
    );
    for below in ["patient", "choices"] {
        assert_eq!(ann.failure(&format!("SELECT * FROM {below}")).await.0, "42P01");
    }
    as_owner(&served.engine, "REVOKE PURPOSE Treatment RECIPIENT Nurse FROM ann").await;
    ann.failure(&format!("SELECT * FROM patient_aview {stated}")).await;
}
