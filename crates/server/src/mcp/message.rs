//! Messages of JSON-RPC 2.0, one per line.

use serde_json::{Value, json};

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const UNKNOWN_METHOD: i64 = -32601;
pub(super) const INVALID_PARAMETERS: i64 = -32602;

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// Wants an answer with this id.
    Request { id: Id, method: String, parameters: Value },
    /// Wants none.
    Notification { method: String, parameters: Value },
    /// Answers something that was never asked.
    Answer,
}

/// The id of a request: a text or a whole number, which are never equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Id {
    Text(String),
    Number(i64),
}

impl Id {
    pub(super) fn read(value: &Value) -> Option<Id> {
        match value {
            Value::String(text) => Some(Id::Text(text.clone())),
            Value::Number(number) => number.as_i64().map(Id::Number),
            _ => None,
        }
    }

    fn value(&self) -> Value {
        match self {
            Id::Text(text) => json!(text),
            Id::Number(number) => json!(number),
        }
    }
}

/// Why a request gets no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }
}

/// Reads a line.
///
/// # Errors
/// If it is no message, with the id if there is one.
pub(super) fn read(line: &str) -> Result<Message, (Option<Id>, Failure)> {
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return Err((None, Failure::new(PARSE_ERROR, "the line is not valid JSON")));
    };
    let id = message.get("id");
    let wrong = |what: &str| Err((id.and_then(Id::read), Failure::new(INVALID_REQUEST, what)));
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return wrong("the line is not one message of JSON-RPC 2.0");
    }
    let parameters = message.get("params").cloned().unwrap_or(Value::Null);
    match (message.get("method"), id.map(Id::read)) {
        (Some(Value::String(method)), Some(Some(id))) => {
            Ok(Message::Request { id, method: method.clone(), parameters })
        }
        (Some(Value::String(method)), None) => Ok(Message::Notification { method: method.clone(), parameters }),
        (Some(_), _) => wrong("the method must be a text, and the id a text or a whole number"),
        (None, _) if message.get("result").or(message.get("error")).is_some() => Ok(Message::Answer),
        (None, _) => wrong("the message has no method"),
    }
}

/// The line that answers a request.
pub(super) fn answer(id: &Id, outcome: Result<Value, Failure>) -> String {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id.value(), "result": result}).to_string(),
        Err(failure) => refusal(Some(id), &failure),
    }
}

/// The line that refuses a message.
pub(super) fn refusal(id: Option<&Id>, failure: &Failure) -> String {
    let error = json!({"code": failure.code, "message": failure.message});
    json!({"jsonrpc": "2.0", "id": id.map(Id::value), "error": error}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let request = Message::Request { id: Id::Number(7), method: "ping".to_owned(), parameters: Value::Null };
        assert_eq!(read(r#"{"jsonrpc": "2.0", "id": 7, "method": "ping"}"#), Ok(request));
        let notification = Message::Notification { method: "x".to_owned(), parameters: json!({"a": 1}) };
        assert_eq!(read(r#"{"jsonrpc": "2.0", "method": "x", "params": {"a": 1}}"#), Ok(notification));
        assert_eq!(read(r#"{"jsonrpc": "2.0", "id": "a", "result": {}}"#), Ok(Message::Answer));
    }

    #[test]
    fn a_wrong_message_is_refused_with_the_id_it_has() {
        for (line, id, code) in [
            ("hello", None, PARSE_ERROR),
            ("[]", None, INVALID_REQUEST),
            (r#"{"id": 1, "method": "ping"}"#, Some(Id::Number(1)), INVALID_REQUEST),
            (r#"{"jsonrpc": "2.0", "id": "a"}"#, Some(Id::Text("a".to_owned())), INVALID_REQUEST),
            (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, None, INVALID_REQUEST),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": 2}"#, Some(Id::Number(1)), INVALID_REQUEST),
        ] {
            let (found, failure) = read(line).unwrap_err();
            assert_eq!((found, failure.code), (id, code), "{line}");
        }
    }
}
