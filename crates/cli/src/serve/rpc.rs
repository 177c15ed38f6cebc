//! JSON-RPC 2.0, as far as it is used: one object a line, requests by name, no batches.

use hearback::documents::ErrorKind;
use hearback::documents::serve::{Notification, RpcError, RpcErrorData};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest line, in bytes.
pub(super) const LINE_MAX: usize = 16 * 1024 * 1024;

const NOT_JSON: i32 = -32700;
const NOT_A_REQUEST: i32 = -32600;
const NO_SUCH_METHOD: i32 = -32601;
const BAD_PARAMS: i32 = -32602;

/// A request; without an id, a notification, which has no answer.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    pub(super) id: Option<Value>,
    pub(super) method: String,
    pub(super) params: Value,
}

/// A line that is no request, and the id to answer it with.
#[derive(Debug, PartialEq)]
pub(super) struct Refused {
    pub(super) id: Value,
    pub(super) error: RpcError,
}

#[derive(Debug, Deserialize)]
struct Envelope {
    jsonrpc: Option<String>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
    params: Option<Value>,
}

/// An id that is `null` is one, too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads a line.
pub(super) fn parse(line: &[u8]) -> Result<Request, Refused> {
    let refuse = |id: Value, code, message: &str| Err(Refused { id, error: usage(code, message) });
    if line.len() > LINE_MAX {
        return refuse(Value::Null, NOT_A_REQUEST, "the line is longer than 16 MiB");
    }
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => return refuse(Value::Null, NOT_JSON, &format!("the line is not JSON: {error}")),
    };
    if value.is_array() {
        return refuse(Value::Null, NOT_A_REQUEST, "batches are not supported: send one request a line");
    }
    let Ok(Envelope { jsonrpc, id, method, params }) = serde_json::from_value(value) else {
        return refuse(Value::Null, NOT_A_REQUEST, "the line is not a request of JSON-RPC 2.0");
    };
    let answered = id.clone().unwrap_or(Value::Null);
    match (jsonrpc.as_deref(), method, &id) {
        (_, _, Some(Value::Object(_) | Value::Array(_) | Value::Bool(_))) => {
            refuse(Value::Null, NOT_A_REQUEST, "`id` has to be text or a number")
        }
        (Some("2.0"), Some(method), _) => {
            Ok(Request { id, method, params: params.unwrap_or_else(|| Value::Object(Map::new())) })
        }
        (Some("2.0"), None, _) => refuse(answered, NOT_A_REQUEST, "`method` is missing"),
        _ => refuse(answered, NOT_A_REQUEST, "`jsonrpc` has to be \"2.0\""),
    }
}

/// The parameters of a request.
pub(super) fn params<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params)
        .map_err(|error| usage(BAD_PARAMS, &format!("the parameters are not valid: {error}")))
}

/// There is no such method.
pub(super) fn unknown(method: &str) -> RpcError {
    usage(NO_SUCH_METHOD, &format!("there is no method `{method}`"))
}

fn usage(code: i32, message: &str) -> RpcError {
    let message = hearback::core::message::clean_line(message);
    RpcError { code, message, data: RpcErrorData { kind: ErrorKind::Usage, tip: None, subject: None } }
}

/// An answer.
#[derive(Debug, Serialize)]
pub(super) struct Response<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

impl<'a> Response<'a> {
    pub(super) fn new(id: &'a Value, result: Result<&'a Value, &'a RpcError>) -> Self {
        Self { jsonrpc: "2.0", id, result: result.ok(), error: result.err() }
    }
}

/// A notification to the host.
#[derive(Debug, Serialize)]
pub(super) struct Notified<'a> {
    jsonrpc: &'static str,
    #[serde(flatten)]
    notification: &'a Notification,
}

impl<'a> Notified<'a> {
    pub(super) fn new(notification: &'a Notification) -> Self {
        Self { jsonrpc: "2.0", notification }
    }
}

/// A line in place of one that cannot be written as JSON, which no document of ours is.
pub(super) fn unwritable(error: &serde_json::Error) -> Vec<u8> {
    let error = usage(-32603, &error.to_string());
    serde_json::to_vec(&Response::new(&Value::Null, Err(&error))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn code(line: &str) -> (Value, i32) {
        let refused = parse(line.as_bytes()).unwrap_err();
        (refused.id, refused.error.code)
    }

    #[test]
    fn a_line_is_a_request_or_says_why_it_is_none() {
        let request = parse(br#"{"jsonrpc":"2.0","id":7,"method":"list"}"#).unwrap();
        assert_eq!(request, Request { id: Some(json!(7)), method: "list".into(), params: json!({}) });
        let notification = parse(br#"{"jsonrpc":"2.0","method":"cancel","params":{"id":7}}"#).unwrap();
        assert_eq!((notification.id, notification.params), (None, json!({ "id": 7 })));
        assert_eq!(code("{"), (Value::Null, NOT_JSON));
        assert_eq!(code("[]"), (Value::Null, NOT_A_REQUEST));
        assert_eq!(code("7"), (Value::Null, NOT_A_REQUEST));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":7}"#), (json!(7), NOT_A_REQUEST));
        assert_eq!(code(r#"{"id":"a","method":"list"}"#), (json!("a"), NOT_A_REQUEST));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":{},"method":"list"}"#), (Value::Null, NOT_A_REQUEST));
    }

    #[test]
    fn an_unknown_parameter_is_named() {
        use hearback::documents::serve::ShowParams;
        let error = params::<ShowParams>(json!({ "job": "x", "jbo": 1 })).unwrap_err();
        assert!(error.code == BAD_PARAMS && error.message.contains("jbo"), "{error:?}");
    }
}
