//! Views over files that change behind the engine's back.

use crate::session::{engine, owner, rows, try_rows};

#[tokio::test]
async fn a_view_of_a_file_is_stale_once_the_file_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("people.csv");
    std::fs::write(&file, "name,zip\na,1001\nb,1002\n").unwrap();
    let engine = engine();
    let mut owner = owner(&engine);
    let setup = format!(
        "CREATE EXTERNAL TABLE people (name TEXT, zip TEXT) STORED AS CSV LOCATION '{}' OPTIONS ('format.has_header' 'true');
         CREATE DGH zip FROM MASK RIGHT;
         CREATE ANONYMIZATION_VIEW v ON SELECT * FROM people WITH ANONYMIZATION_ID name
           ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 2",
        file.display()
    );
    rows(&mut owner, &setup).await;
    assert_eq!(rows(&mut owner, "SELECT zip FROM v").await, [["100*"], ["100*"]]);

    std::fs::write(&file, "name,zip\na,1001\nb,1002\nc,2001\n").unwrap();
    for plan in ["anonymize_first", "select_first"] {
        rows(&mut owner, &format!("SET kohort.plan = '{plan}'")).await;
        let problem = try_rows(&mut owner, "SELECT zip FROM v").await.unwrap_err();
        assert_eq!(problem.to_string(), "the data of the view have changed since it was verified");
    }
    rows(&mut owner, "REFRESH ANONYMIZATION_VIEW v").await;
    assert_eq!(rows(&mut owner, "SELECT zip FROM v").await.len(), 3);

    std::fs::remove_file(&file).unwrap();
    let problem = try_rows(&mut owner, "SELECT zip FROM v").await.unwrap_err();
    assert!(!problem.to_string().contains("100"), "{problem}");
}
