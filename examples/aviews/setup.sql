-- The private tables. Columns are named where a type would be guessed wrong: a postcode is no number.
CREATE EXTERNAL TABLE patient (patient VARCHAR, birth INT, zip VARCHAR, sex VARCHAR, ward VARCHAR, diagnosis VARCHAR)
  STORED AS CSV LOCATION 'examples/aviews/patients.csv' OPTIONS ('format.has_header' 'true');
CREATE EXTERNAL TABLE choices
  STORED AS CSV LOCATION 'examples/aviews/choices.csv' OPTIONS ('format.has_header' 'true');

-- How values are blurred.
CREATE DGH birth FROM STEPS (5, 10, 50);
CREATE DGH zip FROM 'examples/aviews/hierarchies/zip.csv';
CREATE DGH sex;
INSERT INTO DGH sex VALUES ('f', 'any sex'), ('m', 'any sex');
CREATE DGH diagnosis FROM 'examples/aviews/hierarchies/diagnosis.csv';

-- What may be asked.
CREATE ANONYMIZATION_VIEW patients
  ON SELECT patient, birth, zip, sex, ward, diagnosis FROM patient
  WITH ANONYMIZATION_ID patient
  ANONYMIZATION_QUASI_ID (birth DGH_NAME birth, zip DGH_NAME zip, sex DGH_NAME sex)
  ANONYMIZATION_SENSITIVE_ATTR (diagnosis DGH_NAME diagnosis)
  ANONYMIZATION_OTHER (ward)
  patient REFERENCES choices (k, sa_level)
  USING mondrian
  L_DIVERSITY 2;
