-- A nurse looks for patients who could have been born in 1984 and live in 88512.
SELECT birth, zip, sex, ward, diagnosis FROM patients WHERE birth = 1984 AND zip = '88512'
  ORDER BY birth, zip, sex, ward, diagnosis LIMIT 5
  PURPOSE treatment RECIPIENT nurse;

-- A laboratory counts. It sees diagnoses one level up, and not those of people who refuse research.
SELECT diagnosis, count(*) AS persons FROM patients GROUP BY diagnosis ORDER BY persons DESC, diagnosis
  PURPOSE research RECIPIENT lab;

-- How a query is run, and how good its answer is. The second is for the owner.
EXPLAIN SELECT * FROM patients WHERE birth BETWEEN 1980 AND 1989 PURPOSE treatment RECIPIENT nurse;
EXPLAIN UTILITY SELECT * FROM patients WHERE birth BETWEEN 1980 AND 1989 PURPOSE treatment RECIPIENT nurse;

SHOW ANONYMIZATION_VIEWS;
