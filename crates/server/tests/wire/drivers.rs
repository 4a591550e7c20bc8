//! Drivers: psycopg, asyncpg, SQLAlchemy, pandas, pgjdbc, tokio-postgres.

use std::path::PathBuf;
use std::process::Command;

use tokio_postgres::types::Type;

use crate::client::connect;
use crate::fixture::{
    ANALYST, OWNER, PASSWORD, PEOPLE, Served, clients, needed, on_path, python, run, serve, stderr, stdout,
};

/// Runs a script of Python with `url` set.
async fn run_python(served: &Served, script: &str) -> String {
    let python = tokio::task::spawn_blocking(python).await.unwrap();
    let mut command = Command::new(python);
    command.arg("-c").arg(script).env("PGPASSWORD", PASSWORD).env("PORT", served.port.to_string());
    let output = run(command).await;
    assert!(output.status.success(), "{}\n{}", stdout(&output), stderr(&output));
    stdout(&output).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn psycopg_prepares_fetches_and_rolls_back() {
    let served = serve(PEOPLE).await;
    let said = run_python(&served, r#"
import os, psycopg, psycopg.rows
url = f"host=127.0.0.1 port={os.environ['PORT']} user=ann dbname=kohort"
with psycopg.connect(url) as c:
    print(c.execute("SELECT count(*) FROM seen WHERE ward = %s", ["north"]).fetchone())
    print(c.execute("SELECT count(*) FROM seen WHERE ward = %s LIMIT %s", ["north", 1], prepare=True).fetchone())
    print(c.execute("SELECT zip FROM seen WHERE age = %s ORDER BY zip LIMIT 1", [33]).fetchone() is not None)
    with c.cursor(binary=True) as b:
        print(b.execute("SELECT 1::int, 2.5::double, 'a', true, DATE '2024-01-02', TIMESTAMP '2024-01-02 03:04:05', 1.25::decimal(5,2), NULL").fetchone())
    with c.cursor() as t:
        print(t.execute("SELECT 1::int, 2.5::double, 'a', true, DATE '2024-01-02', TIMESTAMP '2024-01-02 03:04:05', 1.25::decimal(5,2), NULL").fetchone())
    with c.cursor(name="some") as s:
        s.itersize = 3
        s.execute("SELECT ward FROM seen ORDER BY ward")
        print([r[0] for r in s])
    with c.transaction():
        c.execute("SELECT 1")
    try:
        c.execute("SELECT * FROM people")
    except psycopg.errors.UndefinedTable as e:
        print(e.sqlstate)
    c.rollback()
    print(c.execute("SHOW GRANTS").fetchall())
    print(c.execute("SHOW kohort.health").fetchone())
    c.row_factory = psycopg.rows.dict_row
    print(c.execute("SELECT count(*), 1 FROM seen WHERE ward = %s", ["north"]).fetchone())
    print(c.cursor("named").execute("SELECT count(*) FROM seen").fetchone())
"#).await;
    let types =
        "(1, 2.5, 'a', True, datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4, 5), Decimal('1.25'), None)";
    let wards = "['north', 'north', 'north', 'north', 'south', 'south', 'south', 'south']";
    let grants = "[('ann', 'SELECT ON seen'), ('ann', 'PURPOSE care RECIPIENT nurse')]";
    let named = "{'count': 4, '?column?': 1}\n{'count': 8}\n";
    assert_eq!(said, format!("(4,)\n(4,)\nTrue\n{types}\n{types}\n{wards}\n42P01\n{grants}\n('ok',)\n{named}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn asyncpg_connects_prepares_and_keeps_pools() {
    let served = serve(PEOPLE).await;
    let said = run_python(&served, r#"
import asyncio, asyncpg, os
async def main():
    pool = await asyncpg.create_pool(host="127.0.0.1", port=int(os.environ["PORT"]), user="ann", database="kohort",
                                     password=os.environ["PGPASSWORD"], min_size=1, max_size=1)
    async with pool.acquire() as c:
        print(await c.fetchval("SELECT count(*) FROM seen WHERE ward = $1", "north"))
        print(tuple(await c.fetchrow("SELECT 1::int, 2.5::double, 'a', true, DATE '2024-01-02', "
                                     "TIMESTAMP '2024-01-02 03:04:05', 1.25::decimal(5,2), NULL")))
        await c.execute("SET kohort.purpose = 'care'")
        print(await c.fetchrow("SELECT current_setting('kohort.purpose') AS p, set_config('kohort.recipient', $1, false)",
                               "nurse"))
        async with c.transaction():
            cursor = await c.cursor("SELECT ward FROM seen ORDER BY ward")
            print(await cursor.forward(3), [r["ward"] for r in await cursor.fetch(2)])
            print([r["ward"] async for r in c.cursor("SELECT ward FROM seen ORDER BY ward", prefetch=3)])
        try:
            await c.fetch("SELECT * FROM people")
        except asyncpg.UndefinedTableError as e:
            print(e.sqlstate)
        try:
            await c.fetch("SELECT current_setting('no.such')")
        except asyncpg.UndefinedObjectError as e:
            print(e.sqlstate)
    # The next holder of the connection has none of these settings.
    async with pool.acquire() as c:
        print(repr(await c.fetchval("SELECT current_setting('kohort.purpose')")))
    await pool.close()
asyncio.run(main())
"#).await;
    let types =
        "(1, 2.5, 'a', True, datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4, 5), Decimal('1.25'), None)";
    let wards = "['north', 'north', 'north', 'north', 'south', 'south', 'south', 'south']";
    let settings = "<Record p='care' set_config='nurse'>";
    assert_eq!(said, format!("4\n{types}\n{settings}\n3 ['north', 'south']\n{wards}\n42P01\n42704\n''\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pandas_reads_in_chunks_through_a_cursor_of_the_server() {
    let served = serve(PEOPLE).await;
    let said = run_python(
        &served,
        r#"
import os, pandas, sqlalchemy as sa
engine = sa.create_engine(f"postgresql+psycopg://ann@127.0.0.1:{os.environ['PORT']}/kohort")
with engine.connect().execution_options(stream_results=True) as c:
    print([len(f) for f in pandas.read_sql("SELECT ward, illness FROM seen ORDER BY ward", c, chunksize=3)])
    print([len(f) for f in pandas.read_sql("seen", c, chunksize=3)])
    print(sorted(pandas.concat(pandas.read_sql_table("seen", c, chunksize=5))["ward"]))
"#,
    )
    .await;
    let wards = "['north', 'north', 'north', 'north', 'south', 'south', 'south', 'south']";
    assert_eq!(said, format!("[3, 3, 2]\n[3, 3, 2]\n{wards}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn psycopg_moves_and_tells_faults_apart() {
    let served = serve(PEOPLE).await;
    let said = run_python(
        &served,
        r#"
import os, psycopg
url = f"host=127.0.0.1 port={os.environ['PORT']} user=ann dbname=kohort"
with psycopg.connect(url, autocommit=True) as c:
    with c.transaction(), c.cursor(name="some") as s:
        s.execute("SELECT ward FROM seen ORDER BY ward")
        s.scroll(3)
        print(s.fetchmany(2), c.execute("MOVE ALL IN some").statusmessage, s.fetchall())
    print(len(c.execute("TABLE seen").fetchall()), c.execute("TABLE seen ORDER BY ward LIMIT 1", prepare=True).rowcount)
    for sql in ["SELECT 1 / 0", "SELECT 1 / (x - x) FROM (VALUES (1)) AS n(x)", "SELECT 1.5 % 0", "SELECT 1 % (x - x) FROM (VALUES (1)) AS n(x)",
                "SELECT sum(1 / (x - 3)) FROM generate_series(1, 9) AS n(x)",
                "SELECT (SELECT ward FROM seen)", "SELECT * FROM seen WHERE ward = (SELECT ward FROM seen)",
                "SELECT * FROM seen PIVOT (count(*) FOR ward IN ('north'))"]:
        try:
            print(c.execute(sql).fetchall())
        except psycopg.Error as e:
            print(e.sqlstate, e.diag.message_primary)
"#,
    )
    .await;
    let moved = "[('north',), ('south',)] MOVE 3 []\n8 1\n";
    let zero = "22012 division by zero\n";
    let many = "21000 a subquery that stands for one value has more than one row\n";
    // Numbers with a point are DOUBLE.
    let faults = format!("{zero}{zero}[(nan,)]\n{zero}{zero}{many}{many}");
    let pivot = "0A000 line 1, column 1: PIVOT (write sum(x) FILTER (WHERE ...) for each column) is not supported\n";
    assert_eq!(said, format!("{moved}{faults}{pivot}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn psycopg_tells_rows_that_break_a_rule_from_faults() {
    let folder = tempfile::tempdir().unwrap();
    let served = crate::fixture::serve_folder(folder.path(), |_| {}).await;
    let said = run_python(
        &served,
        r#"
import os, psycopg
url = f"host=127.0.0.1 port={os.environ['PORT']} user=olga dbname=kohort"
with psycopg.connect(url, autocommit=True) as c:
    c.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT NOT NULL)")
    c.execute("INSERT INTO t VALUES (1, 'a')")
    for sql in ["INSERT INTO t VALUES (1, 'b')", "INSERT INTO t VALUES (2, NULL)", "INSERT INTO t (id) VALUES (3)"]:
        try:
            c.execute(sql)
        except psycopg.IntegrityError as e:
            print(type(e).__name__)
"#,
    )
    .await;
    assert_eq!(said, "UniqueViolation\nNotNullViolation\nNotNullViolation\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlalchemy_reflects_granted_views() {
    let served = serve(PEOPLE).await;
    let said = run_python(
        &served,
        r#"
import os, sqlalchemy as sa
engine = sa.create_engine(f"postgresql+psycopg://ann@127.0.0.1:{os.environ['PORT']}/kohort")
with engine.connect() as c:
    i = sa.inspect(c)
    print(i.get_schema_names())
    print(i.get_table_names(), i.get_view_names())
    print([(x["name"], str(x["type"])) for x in i.get_columns("seen")])
    print(i.has_table("seen"), i.has_table("people"))
    views = sa.MetaData()
    views.reflect(c, views=True)
    print(list(views.tables), c.scalar(sa.text("SELECT pg_get_viewdef(oid) FROM pg_class WHERE relname = 'seen'")))
    print(i.get_pk_constraint("seen")["constrained_columns"], i.get_foreign_keys("seen"), i.get_indexes("seen"))
    print(i.get_unique_constraints("seen"), i.get_check_constraints("seen"), i.get_table_comment("seen"))
    kind = sa.engine.reflection.ObjectKind.ANY
    for each in ["columns", "pk_constraint", "foreign_keys", "indexes", "unique_constraints", "check_constraints",
                 "table_comment", "table_options"]:
        told = getattr(i, f"get_multi_{each}")(kind=kind)
        assert list(told) == [(None, "seen")], (each, told)
    # A definition that is NULL is told as a table that is not there.
    for ask in [lambda: i.get_view_definition("seen"), lambda: sa.Table("people", sa.MetaData(), autoload_with=c)]:
        try:
            print(ask())
        except sa.exc.NoSuchTableError as e:
            print("none", e)
    t = sa.Table("seen", sa.MetaData(), autoload_with=c)
    print(c.execute(sa.select(sa.func.count()).select_from(t).where(t.c.ward == "north")).scalar())
"#,
    )
    .await;
    let columns = "[('name', 'TEXT'), ('age', 'TEXT'), ('zip', 'TEXT'), ('ward', 'TEXT'), ('illness', 'TEXT')]";
    let mut lines = said.lines();
    assert!(lines.next().unwrap().contains("'public'"), "{said}");
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            "[] ['seen']",
            columns,
            "True False",
            "['seen'] None",
            "[] [] []",
            "[] [] {'text': None}",
            "none seen",
            "none people",
            "4"
        ],
        "{said}"
    );
}

/// A program that uses pgjdbc.
const JAVA: &str = r#"
import java.sql.*;
public class Ask {
  public static void main(String[] a) throws Exception {
    try (Connection c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + a[0] + "/kohort", "ann", a[1])) {
      PreparedStatement p = c.prepareStatement("SELECT count(*) FROM seen WHERE ward = ?");
      for (int i = 0; i < 7; i++) {
        p.setString(1, "north");
        ResultSet r = p.executeQuery(); r.next();
        if (i == 0 || i == 6) System.out.println(r.getLong(1));
      }
      c.setAutoCommit(false);
      Statement s = c.createStatement();
      s.setFetchSize(3);
      int n = 0;
      try (ResultSet r = s.executeQuery("SELECT ward FROM seen")) { while (r.next()) n++; }
      c.commit();
      System.out.println(n);
      try (ResultSet t = c.getMetaData().getTables(null, "public", "%", null)) {
        while (t.next()) System.out.println(t.getString("TABLE_NAME") + " " + t.getString("TABLE_TYPE"));
      }
      try (ResultSet t = c.getMetaData().getColumns(null, "public", "seen", "%")) {
        while (t.next()) System.out.print(t.getString("COLUMN_NAME") + " ");
      }
      System.out.println();
      try { s.executeQuery("SELECT * FROM people"); } catch (SQLException e) { System.out.println(e.getSQLState()); }
      c.rollback();
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn pgjdbc_prepares_fetches_and_lists() {
    let java = needed(on_path("java"), "java");
    let served = serve(PEOPLE).await;
    let jar = Some(PathBuf::from("/usr/share/java/postgresql.jar")).filter(|jar| jar.is_file());
    let jar = needed(jar, "pgjdbc");
    let folder = clients().join("jdbc");
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("Ask.java");
    std::fs::write(&source, JAVA).unwrap();
    let mut command = Command::new(java);
    command.arg("-cp").arg(&jar).arg(&source).args([served.port.to_string().as_str(), PASSWORD]);
    let output = run(command).await;
    let expected = "4\n4\n8\nseen VIEW\nname age zip ward illness \n42P01\n";
    assert_eq!(stdout(&output), expected, "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_and_columns_have_types() {
    let served = serve(PEOPLE).await;
    let ann = connect(&served, ANALYST).await;
    let statement = ann.client.prepare("SELECT count(*) AS n, max(ward) AS w FROM seen WHERE ward = $1").await.unwrap();
    assert_eq!(statement.params(), [Type::TEXT]);
    assert_eq!(
        statement.columns().iter().map(|column| column.type_().clone()).collect::<Vec<_>>(),
        [Type::INT8, Type::TEXT]
    );
    let typed = ann.client.prepare_typed("SELECT $1 + 1, $2", &[Type::INT8, Type::TEXT]).await.unwrap();
    let row = ann.client.query_one(&typed, &[&41i64, &"it's"]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 42);
    assert_eq!(row.get::<_, String>(1), "it's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_never_a_part_of_the_statement() {
    let served = serve(PEOPLE).await;
    let ann = connect(&served, ANALYST).await;
    for value in ["' OR '1'='1", "north'; DROP USER ann; --", "\\' OR 1=1", "$1", "north\u{0}"] {
        let rows = ann.client.query("SELECT * FROM seen WHERE ward = $1", &[&value]).await;
        assert!(rows.is_ok_and(|rows| rows.is_empty()) || value.contains('\0'), "{value}");
    }
    let owner = connect(&served, OWNER).await;
    let insert = "INSERT INTO people VALUES ($1, $2, '1001', 'north', 'flu')";
    let statement = owner.client.prepare_typed(insert, &[Type::TEXT, Type::INT4]).await.unwrap();
    assert_eq!(owner.client.execute(&statement, &[&"Ida'); DROP TABLE people; --", &33]).await.unwrap(), 1);
    let count = owner.client.query_one("SELECT count(*) FROM people", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 9);
}
