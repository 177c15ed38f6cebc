//! What `hearback top` consists of; `commands/top.rs` runs it.

mod draw;
mod events;
mod output;
mod paint;
mod screen;
mod view;

pub(crate) use draw::draw;
pub(crate) use events::{Event, PICTURE, Sources};
pub(crate) use output::ShownOutput;
pub(crate) use screen::Screen;
pub(crate) use view::{Action, View};
