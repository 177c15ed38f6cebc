//! As much of an HTTP server as agents need to talk to a model on loopback: one thread a connection, whole bodies,
//! and answers in one piece or as a stream of events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The largest body that is read. Agents send their whole conversation, with the descriptions of all tools.
const BODY_MAX: usize = 64 << 20;

/// One request, as far as a model needs it.
pub(super) struct Request {
    pub(super) method: String,
    /// Without the part after `?`.
    pub(super) path: String,
    /// `null` where the body is no JSON.
    pub(super) body: Value,
}

/// What is answered.
pub(super) enum Response {
    /// One document.
    Json(u16, Value),
    /// Server-sent events, each with its name, if it has one.
    Events(Vec<(Option<&'static str>, String)>),
}

/// Listens on a free port of loopback until this process ends. Returns the port.
pub(super) fn serve(answer: impl Fn(Request) -> Response + Clone + Send + 'static) -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port on loopback")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let answer = answer.clone();
            // An agent that hangs up in between has its reasons.
            thread::spawn(move || drop(talk(connection, answer)));
        }
    });
    Ok(port)
}

fn talk(connection: TcpStream, answer: impl Fn(Request) -> Response) -> Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut writer = connection;
    while let Some(request) = read(&mut reader)? {
        match answer(request) {
            Response::Json(code, value) => {
                let body = value.to_string();
                let length = body.len();
                write!(
                    writer,
                    "HTTP/1.1 {code} -\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
                )?;
            }
            Response::Events(events) => {
                write!(
                    writer,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
                )?;
                for (name, data) in events {
                    if let Some(name) = name {
                        writeln!(writer, "event: {name}")?;
                    }
                    write!(writer, "data: {data}\n\n")?;
                }
                return Ok(());
            }
        }
    }
    Ok(())
}

fn read(reader: &mut impl BufRead) -> Result<Option<Request>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut words = first.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { bail!("no request: {first:?}") };
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse()?,
            "transfer-encoding" => is_chunked = value.contains("chunked"),
            _ => {}
        }
    }
    let body = if is_chunked { chunks(reader)? } else { exactly(reader, length)? };
    Ok(Some(Request {
        method: method.to_owned(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }))
}

fn exactly(reader: &mut impl Read, length: usize) -> Result<Vec<u8>> {
    if length > BODY_MAX {
        bail!("a body of {length} bytes");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn chunks(reader: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).context("the size of a chunk")?;
        body.extend(exactly(reader, length)?);
        reader.read_line(&mut line)?; // The line end behind it.
        if length == 0 {
            return Ok(body);
        }
    }
}
