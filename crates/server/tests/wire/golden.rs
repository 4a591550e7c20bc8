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
    let shown = ann.rows(&format!("SELECT * FROM patient_aview ORDER BY zipcode, disease {stated}")).await.unwrap();
    assert_eq!(shown.len(), 5);
    assert!(shown.iter().all(|row| row[0] == "NULL"), "names are hidden: {shown:?}");
    let mut diseases: Vec<&str> = shown.iter().map(|row| row[3].as_str()).collect();
    diseases.sort_unstable();
    assert_eq!(diseases, ["Indigestion", "Pneumonia", "Stomach-disease", "Viral-disease", "Viral-disease"]);
    assert_eq!(shown.iter().filter(|row| row[1] == "NULL").count(), 2, "P1 and P3 refuse: {shown:?}");

    // Prepared, with the value the paper asks for.
    let asked = format!("SELECT zipcode FROM patient_aview WHERE zipcode = $1 {stated}");
    let prepared = ann.client.query(&asked, &[&"88512"]).await.unwrap();
    let could = shown.iter().filter(|row| ["88512", "885**", "88***", "*****"].contains(&row[2].as_str())).count();
    assert_eq!(prepared.len(), could);
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
