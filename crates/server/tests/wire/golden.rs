//! The patients of the query-processing paper's figure 8, over the wire.

use crate::client::connect;
use crate::fixture::{ANALYST, as_owner, serve};

const PATIENTS: &str = "
CREATE TABLE patient (name TEXT, birth INT, zipcode TEXT, disease TEXT) AS VALUES
  ('P1', 1984, '88512', 'Ulcer'), ('P2', 1988, '88540', 'Indigestion'), ('P3', 1979, '88541', 'Fever'),
  ('P4', 1975, '89321', 'Fever'), ('P5', 1977, '89344', 'Pneumonia');
CREATE TABLE choices (name TEXT, name_op TEXT, birth_op TEXT, zipcode_op TEXT, k INT, sa_level INT, purpose TEXT, recipient TEXT)
  AS VALUES
  ('P1', 'F', 'F', 'T', 2, 1, 'Treatment', 'Nurse'), ('P2', 'T', 'T', 'T', 2, 0, 'Treatment', 'Nurse'),
  ('P3', 'F', 'F', 'T', 3, 1, 'Treatment', 'Nurse'), ('P4', 'T', 'T', 'T', 2, 1, 'Treatment', 'Nurse'),
  ('P5', 'T', 'T', 'T', 2, 0, 'Treatment', 'Nurse');
CREATE DGH birth;
INSERT INTO DGH birth VALUES ('1975', '1970-1980'), ('1977', '1970-1980'), ('1979', '1970-1980'),
  ('1984', '1980-1990'), ('1988', '1980-1990'), ('1970-1980', '*'), ('1980-1990', '*');
CREATE DGH zip;
INSERT INTO DGH zip VALUES ('88512', '885**'), ('88540', '885**'), ('88541', '885**'), ('885**', '88***'), ('88***', '*****'),
  ('89321', '893**'), ('89344', '893**'), ('893**', '89***'), ('89***', '*****');
CREATE DGH disease;
INSERT INTO DGH disease VALUES ('Ulcer', 'Stomach-disease'), ('Indigestion', 'Stomach-disease'), ('Fever', 'Viral-disease'),
  ('Pneumonia', 'Lung-disease'), ('Stomach-disease', '*'), ('Viral-disease', '*'), ('Lung-disease', '*');
CREATE ANONYMIZATION_VIEW patient_aview ON SELECT name, birth, zipcode, disease FROM patient
  WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (birth DGH_NAME birth, zipcode DGH_NAME zip)
  ANONYMIZATION_SENSITIVE_ATTR (disease DGH_NAME disease)
  name REFERENCES choices (k, sa_level) DISCLOSURE ROW;
GRANT SELECT ON patient_aview TO ann;
GRANT PURPOSE Treatment RECIPIENT Nurse TO ann;
";

#[tokio::test(flavor = "multi_thread")]
async fn the_patients_of_the_paper_are_shown_as_the_paper_shows_them() {
    let served = serve(PATIENTS).await;
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
