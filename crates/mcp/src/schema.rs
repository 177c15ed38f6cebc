//! JSON Schema for clients and models.

use std::sync::Arc;

use hearback::documents::ErrorDocument;
use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The schema of a tool's arguments, without references: not every client follows them.
pub(crate) fn of_input<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut root = settings.into_generator().into_root_schema_for::<T>();
    for about_the_type in ["title", "description"] {
        root.remove(about_the_type);
    }
    Arc::new(plain(root))
}

/// The schema of a tool's answer: the document `T`, or the document of an error.
pub(crate) fn of_answer<T: JsonSchema>() -> Arc<JsonObject> {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.meta_schema = None)
        .for_serialize()
        .into_generator();
    let (document, error) = (generator.subschema_for::<T>(), generator.subschema_for::<ErrorDocument>());
    let mut root: Schema = schemars::json_schema!({ "type": "object", "anyOf": [document, error] });
    root.insert("$defs".to_owned(), Value::Object(generator.take_definitions(true)));
    let mut root = Value::from(root);
    // `hearback schema` explains every field. Here the words would be most of what a client has to read.
    without_words(&mut root);
    Arc::new(plain(root))
}

/// Removes descriptions, and lists the words of an enum in one place.
fn without_words(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("description").is_some_and(Value::is_string) {
                object.remove("description");
            }
            object.values_mut().for_each(without_words);
            let constant = |choice: &Value| {
                let choice = choice.as_object()?;
                let is_plain = choice.keys().all(|key| key == "const" || key == "type");
                choice.get("const").filter(|value| is_plain && value.is_string()).cloned()
            };
            if let Some(Value::Array(choices)) = object.get("oneOf")
                && let Some(words) = choices.iter().map(constant).collect::<Option<Vec<_>>>()
            {
                object.remove("oneOf");
                object.insert("type".to_owned(), json!("string"));
                object.insert("enum".to_owned(), Value::Array(words));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_words),
        _ => {}
    }
}

fn plain(schema: impl Into<Value>) -> JsonObject {
    let mut value = schema.into();
    simplify(&mut value);
    match value {
        Value::Object(mut root) => {
            root.entry("type").or_insert(json!("object"));
            root.entry("properties").or_insert(json!({}));
            root
        }
        _ => Map::new(),
    }
}

/// Says of an absent field only what it is when it is there. Some model providers refuse a list of types, and no answer
/// of ours holds a null. Formats such as `uint32` are known to no validator.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|word| word != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if object.get("default") == Some(&Value::Null) {
                object.remove("default");
            }
            if object.get("format").and_then(Value::as_str).is_some_and(is_number_format) {
                object.remove("format");
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| *choice != json!({ "type": "null" }));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    for (key, inner) in only {
                        object.entry(key).or_insert(inner);
                    }
                }
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn is_number_format(format: &str) -> bool {
    format.starts_with("uint") || format.starts_with("int") || matches!(format, "double" | "float")
}
