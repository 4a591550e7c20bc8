-- The patients of the query-processing paper's figure 8, what they allow, and the DGHs of their columns.
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
