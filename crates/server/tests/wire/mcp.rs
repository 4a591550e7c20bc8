//! AI agents: conversations with `kohort-serve --mcp` over its stdin and stdout, as an agent's host has them.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::fixture::{ANALYST, OWNER, PASSWORD, PEOPLE, Served, as_owner, serve, serve_as, wait_until};

/// The process that an agent's host starts.
struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    n_asked: u64,
}

fn command(served: &Served, user: &str, arguments: &[&str]) -> Command {
    let location = format!("postgres://{user}@127.0.0.1:{}/kohort", served.port);
    let mut command = Command::new(env!("CARGO_BIN_EXE_kohort-serve"));
    command.args(["--mcp", &location]).args(arguments).env("PGPASSWORD", PASSWORD);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Agent {
    fn start(served: &Served, arguments: &[&str]) -> Agent {
        let mut child = command(served, ANALYST, arguments).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()).lines());
        Agent { child, stdin, stdout, n_asked: 0 }
    }

    /// An agent that has begun the conversation.
    fn greeted(served: &Served, arguments: &[&str]) -> Agent {
        let mut agent = Agent::start(served, arguments);
        let parameters = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = agent.ask("initialize", &parameters);
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(answer["result"]["serverInfo"]["name"], "kohort");
        agent.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        agent
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn hear(&mut self) -> Value {
        serde_json::from_str(&self.stdout.next().expect("there is an answer").unwrap()).unwrap()
    }

    fn begin(&mut self, method: &str, parameters: &Value) -> u64 {
        self.n_asked += 1;
        let id = self.n_asked;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}).to_string());
        id
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        let id = self.begin(method, parameters);
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The text that a tool answers, and whether it is an error.
    fn call(&mut self, name: &str, arguments: &Value) -> (String, bool) {
        let answer = self.ask("tools/call", &json!({"name": name, "arguments": arguments}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        (text, result["isError"].as_bool().unwrap())
    }

    fn query(&mut self, sql: &str) -> Value {
        let (text, is_error) = self.call("query", &json!({"sql": sql}));
        assert!(!is_error, "{sql}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Closes stdin, and waits for the end of the process.
    fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

/// Runs a conversation on a thread of its own, because it waits for the server in this process.
async fn converse<T: Send + 'static>(conversation: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(conversation).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_lists_describes_and_queries_what_its_login_may_read() {
    let served = serve(PEOPLE).await;
    converse(move || {
        let mut agent = Agent::greeted(&served, &[]);
        let tools = agent.ask("tools/list", &json!({}));
        let tools = tools["result"]["tools"].as_array().unwrap().iter();
        let names: Vec<&str> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["list_views", "describe_view", "query"]);

        let (views, _) = agent.call("list_views", &json!({}));
        assert!(
            views.starts_with(r#"{"columns":["view","state"],"more_rows":false,"rows":[["seen","usable"#),
            "{views}"
        );
        let (columns, _) = agent.call("describe_view", &json!({"view": "seen"}));
        assert!(columns.contains(r#"["age","text"]"#) && columns.contains(r#"["illness","text"]"#), "{columns}");

        let seen = agent.query("SELECT zip, count(*) AS n FROM seen WHERE age = 34 GROUP BY zip ORDER BY zip; -- all");
        assert_eq!(seen, json!({"columns": ["zip", "n"], "more_rows": false, "rows": [["1001", "2"], ["1002", "2"]]}));
        let (some, _) = agent.call("query", &json!({"sql": "SELECT name, zip FROM seen", "max_rows": 2}));
        let some: Value = serde_json::from_str(&some).unwrap();
        assert_eq!((some["rows"].as_array().unwrap().len(), &some["more_rows"]), (2, &json!(true)));
        assert_eq!(some["rows"][0][0], json!(null));
        assert_eq!(agent.ask("ping", &json!({}))["result"], json!({}));
        assert_eq!(agent.end(), Some(0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_login_may_not_do_is_refused_in_words_and_the_conversation_goes_on() {
    let served = serve(PEOPLE).await;
    converse(move || {
        let mut agent = Agent::greeted(&served, &[]);
        for (sql, said) in [
            ("SELECT * FROM people", "people"),
            ("SELECT max(zip) FROM seen", "hint: use count"),
            ("SELECT zip FROM seen PURPOSE study RECIPIENT lab", "granted"),
            ("DROP TABLE people", "one SELECT"),
            ("SELECT 1; SELECT 2", "one SELECT"),
            ("SELECT 1; DROP TABLE people", "one SELECT"),
            ("SET kohort.purpose = 'study'", "one SELECT"),
            ("SELECT FROM WHERE", "error: "),
            ("", "one SELECT"),
        ] {
            let (text, is_error) = agent.call("query", &json!({"sql": sql}));
            assert!(is_error && text.contains(said), "{sql}: {text}");
        }
        let (text, is_error) = agent.call("describe_view", &json!({"view": "people' OR '1' = '1"}));
        assert!(is_error && text.contains("list_views"), "{text}");
        assert_eq!(agent.query("SELECT count(*) AS n FROM seen")["rows"], json!([["8"]]));

        let error = |answer: Value| answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(error(agent.ask("tools/call", &json!({"name": "drop_view"}))), -32602);
        assert_eq!(error(agent.ask("tools/call", &json!({"name": "query", "arguments": {}}))), -32602);
        assert_eq!(error(agent.ask("resources/list", &json!({}))), -32601);
        assert_eq!(error(agent.ask("initialize", &json!({}))), -32600);
        for (line, code) in [("hello", -32700), ("[]", -32600), (r#"{"jsonrpc": "2.0", "id": 1}"#, -32600)] {
            agent.say(line);
            assert_eq!(error(agent.hear()), code, "{line}");
        }
        assert_eq!(agent.end(), Some(0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_answered_before_the_greeting_or_to_an_owner() {
    let served = serve(PEOPLE).await;
    converse(move || {
        let mut agent = Agent::start(&served, &[]);
        assert_eq!(agent.ask("tools/list", &json!({}))["error"]["code"], -32600);
        assert_eq!(agent.ask("ping", &json!({}))["result"], json!({}));
        assert_eq!(
            agent.ask("initialize", &json!({"protocolVersion": "1900-01-01"}))["result"]["protocolVersion"],
            "2025-06-18"
        );
        assert_eq!(agent.end(), Some(0));

        let owner = command(&served, OWNER, &[]).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(owner.stderr).unwrap();
        assert!(
            said.contains("'olga' is an owner") && said.contains("hint: let agents log in as an analyst"),
            "{said}"
        );
        assert_eq!((owner.status.code(), owner.stdout.len()), (Some(2), 0));
        let wrong = command(&served, ANALYST, &[]).env("PGPASSWORD", "wrong").stdin(Stdio::null()).output().unwrap();
        assert_eq!(wrong.status.code(), Some(2));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_asked_under_the_purpose_that_was_given_and_logged_with_the_login() {
    let served = serve(PEOPLE).await;
    as_owner(&served.engine, "GRANT PURPOSE study RECIPIENT lab TO ann").await;
    let engine = served.engine.clone();
    converse(move || {
        let mut agent = Agent::greeted(&served, &["--purpose", "study", "--recipient", "lab"]);
        let seen = agent.query("SELECT DISTINCT illness FROM seen ORDER BY illness");
        assert_eq!(seen["rows"], json!([["infection"], ["stomach"]]));
        let seen = agent.query("SELECT DISTINCT illness FROM seen ORDER BY illness PURPOSE care RECIPIENT nurse");
        assert_eq!(seen["rows"], json!([["cold"], ["flu"], ["ulcer"]]));
        assert_eq!(agent.end(), Some(0));
    })
    .await;
    let log = logged(&engine).await;
    let asked = |line: &&String| line.contains("DISTINCT illness") && line.contains("ann");
    let asked: Vec<&String> = log.iter().filter(asked).collect();
    assert!(asked.iter().any(|line| line.contains("study") && line.contains("lab")), "{log:?}");
    assert!(asked.iter().any(|line| line.contains("care") && line.contains("nurse")), "{log:?}");
    assert!(log.iter().any(|line| line.contains("| FETCH ") && line.contains("ann")), "{log:?}");
}

/// The entries of the compliance log.
async fn logged(engine: &kohort_sql::Engine) -> Vec<String> {
    let mut owner = engine.session(kohort_sql::Role::Owner);
    let mut lines = Vec::new();
    for parsed in kohort_sql::parser::parse("SHOW COMPLIANCE LOG").unwrap() {
        let kohort_sql::Outcome::Rows(stream) = owner.run(parsed).await.unwrap() else { panic!("it has rows") };
        let batches: Vec<_> = futures::TryStreamExt::try_collect(stream).await.unwrap();
        let shown = datafusion::arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
        lines.extend(shown.lines().map(str::to_owned));
    }
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_cancelled_ends_on_the_server_and_the_next_is_answered() {
    let served = serve(PEOPLE).await;
    let server = std::sync::Arc::clone(&served.server);
    let mut agent = converse(move || {
        let mut agent = Agent::greeted(&served, &[]);
        let endless = "SELECT count(*) FROM generate_series(1, 1000000) AS a (x), generate_series(1, 1000000) AS b (y) WHERE x < y";
        let id = agent.begin("tools/call", &json!({"name": "query", "arguments": {"sql": endless}}));
        // Waits behind the first one, and is answered at once when that ends.
        let next = agent.begin("tools/call", &json!({"name": "list_views"}));
        assert_eq!(agent.ask("ping", &json!({}))["result"], json!({}), "other requests are answered meanwhile");
        (agent, served, id, next)
    })
    .await;
    wait_until("it runs", || server.metrics().running.get() == 1).await;
    let (id, next) = (agent.2, agent.3);
    converse(move || {
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        agent.0.say(&cancelled.to_string());
        let answer = agent.0.hear();
        assert_eq!(answer["id"], next, "the cancelled question is not answered: {answer}");
        assert_eq!(agent.0.end(), Some(0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_has_the_time_that_the_server_gives() {
    let served = serve_as(PEOPLE, |configuration| configuration.statement_timeout = 1).await;
    converse(move || {
        let mut agent = Agent::greeted(&served, &[]);
        let endless = "SELECT count(*) FROM generate_series(1, 1000000) AS a (x), generate_series(1, 1000000) AS b (y) WHERE x < y";
        let (text, is_error) = agent.call("query", &json!({"sql": endless}));
        assert!(is_error && text.contains("took too long"), "{text}");
        assert_eq!(agent.query("SELECT count(*) AS n FROM seen")["rows"], json!([["8"]]));
        assert_eq!(agent.end(), Some(0));
    })
    .await;
}

/// A view of bills that answers only aggregates.
const BILLS: &str = "
CREATE TABLE bills AS SELECT name, age, zip, age * 10 AS cost FROM people;
CREATE ANONYMIZATION_VIEW costs ON SELECT name, age, zip, cost FROM bills WITH ANONYMIZATION_ID name
  ANONYMIZATION_QUASI_ID (age, zip DGH_NAME zip) ANONYMIZATION_SENSITIVE_ATTR (cost) K 3 ANSWERS AGGREGATES;
GRANT SELECT ON costs TO ann;
";

#[tokio::test(flavor = "multi_thread")]
async fn through_both_doors_a_view_of_aggregates_tells_sums_of_whole_classes_alone() {
    let served = serve(&PEOPLE.replace("GRANT SELECT ON seen TO ann;", BILLS)).await;
    let mut ann = crate::client::connect(&served, ANALYST).await;
    let mut asked = Vec::new();
    for age in 30..60 {
        for condition in [format!("age = {age}"), format!("age <> {age}"), format!("age < {age}")] {
            let sql = format!("SELECT count(*) AS n, sum(cost) AS total FROM costs WHERE {condition}");
            let by_psql = ann.rows(&sql).await.unwrap();
            assert!(by_psql[0][0] == "0" || by_psql[0][0].parse::<u64>().unwrap() >= 3, "{sql}: {by_psql:?}");
            asked.push((sql, by_psql));
        }
    }
    let cursor = "DECLARE c CURSOR FOR SELECT cost FROM costs";
    assert_eq!(ann.failure(cursor).await.0, "42501");
    assert_eq!(ann.failure("SELECT cost FROM costs WHERE age = 31").await.0, "42501");
    converse(move || {
        let mut agent = Agent::greeted(&served, &[]);
        for (sql, by_psql) in asked.iter().step_by(5) {
            let row = &agent.query(sql)["rows"][0];
            let cells: Vec<&str> = (0..2).map(|column| row[column].as_str().unwrap_or("NULL")).collect();
            assert_eq!(cells, by_psql[0], "{sql}");
        }
        let (text, is_error) = agent.call("query", &json!({"sql": "SELECT cost FROM costs"}));
        assert!(is_error && text.contains("answers only counts, sums and averages"), "{text}");
        let (views, _) = agent.call("list_views", &json!({}));
        assert!(views.contains("answers counts, sums and averages"), "{views}");
        assert_eq!(agent.end(), Some(0));
    })
    .await;
}
