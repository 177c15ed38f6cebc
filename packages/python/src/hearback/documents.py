"""The documents that hearback prints and sends, as types.

Written by generate.py from `hearback schema`: do not edit. A field without a value is left out, and a newer hearback
may add fields and kinds.
"""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

AnswerSource: TypeAlias = Literal["file", "message", "output", "unknown"]
"""Where an answer was found."""

BootId: TypeAlias = str
"""Names one run of an operating system. Opaque; compared for equality only."""

ClaimKind: TypeAlias = Literal["follow_up"]
"""What was claimed."""

Command: TypeAlias = dict[str, Any]
"""A program with its arguments, or text for a shell."""

Durability: TypeAlias = Literal["power", "process", "unknown"]
"""Whether records survive a power cut."""

ErrorKind: TypeAlias = Literal[
    "usage", "denied", "no_sink", "unknown_session", "key_taken", "chain_limit", "unknown_job", "ambiguous_job",
    "not_ended", "no_answer", "nothing", "claim_lost", "not_killed", "no_input", "not_delivered", "check_failed",
    "declined", "no_monitor", "busy", "deadline", "not_executable", "not_found", "not_started", "partly", "store",
    "monitor_silent", "failed", "interrupted", "cancelled", "unknown_token"
]
"""The kinds of errors. `docs/exit-codes.md` describes each."""

FollowUpState: TypeAlias = Literal[
    "not_wanted", "waiting", "pending", "leased", "delivered", "queued", "read", "dead_letter", "discarded", "expired",
    "closed"
]
"""The state of a follow-up."""

GapReason: TypeAlias = Literal["cap", "lost", "unknown"]
"""Why a part of the output is missing."""

HistoryWord: TypeAlias = Literal["tool_results", "text", "empty"]
"""What the history of a conversation ends with."""

Interruption: TypeAlias = Literal["restart", "shutdown", "message", "crash", "unknown"]
"""Why a turn was interrupted."""

ItemKind: TypeAlias = Literal["follow_up", "message"]
"""What an item is."""

JobId: TypeAlias = str
"""Names a job on disk and on the command line. Always a legal file name on Windows and Unix. The first nine characters
are the time of launch, so ids sort by age; the other seven are random, so the tail of an id is its best short form."""

KilledBy: TypeAlias = dict[str, Any] | Literal["person", "system", "host", "output_limit", "unknown"]
"""Who requested a kill."""

LostReason: TypeAlias = Literal["reboot", "supervisor_died", "unswept", "abandoned", "unreadable", "unknown"]
"""Why it is unknown how a job ended."""

Missing: TypeAlias = Literal["left_out", "cap", "lost", "unknown"]
"""Why a part of the output is not printed."""

NotifyPolicy: TypeAlias = Literal["auto", "always", "failure", "success", "never", "unknown"]
"""When the owner of a job is notified that it has ended."""

OsText: TypeAlias = str | dict[str, Any]
"""Text as the operating system has it: mostly UTF-8, but bound to nothing. Valid text is stored as a string, anything
else as the exact units it is made of."""

ReadyType: TypeAlias = Literal["ready"]
"""The type of the first line of `events`."""

ReleaseHow: TypeAlias = Literal["busy", "failed", "gone"]
"""Why an item is given back."""

RequestId: TypeAlias = int | str
"""How a request is named: text or a number."""

ServiceManager: TypeAlias = Literal["systemd", "launchd", "task_scheduler"]
"""The program that starts services at login, and restarts them."""

Session: TypeAlias = str
"""The owner of a job: one conversation of one agent. Chosen by the host, opaque to us."""

SettingSource: TypeAlias = Literal["environment", "file", "code", "default"]
"""Where the value of a setting comes from."""

SetupState: TypeAlias = Literal["absent", "current", "outdated", "foreign", "by_hand"]
"""What is there in place of a file of a set-up."""

StartErrorKind: TypeAlias = Literal["not_found", "not_executable", "bad_directory", "other", "unknown"]
"""The kinds of failed starts."""

StateWord: TypeAlias = Literal["starting", "running", "done", "failed", "ended"]
"""The state of a job, in one word."""

StopKind: TypeAlias = Literal["restart", "stop", "drain", "unknown"]
"""What the monitor can be requested to do. In each case it accepts no new work and lets turns end."""

ToldHow: TypeAlias = Literal["delivered", "queued", "read", "discarded", "expired", "other"]
"""How the delivery of a follow-up ended."""

TurnCloseHow: TypeAlias = Literal["done", "failed"]
"""How a turn ended."""

class AckParams(TypedDict):
    """What `ack` takes."""

    token: str
    """The token of the item."""


class AgentDocument(TypedDict):
    """An agent that hearback knows."""

    doors: list[str]
    """The ways into one of its sessions, in the order in which they are tried."""

    here: bool
    """Whether it runs this command."""

    name: str
    """Its name, which is also the name of its sink."""

    program: NotRequired[str | None]
    """Its program; absent if it is not installed."""

    title: str
    """Its name for people."""

    version: NotRequired[str | None]
    """What it says its version is."""


class AgentsDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    agents: list["AgentDocument"]
    """The agents that hearback knows."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""


class AnswerText(TypedDict):
    """Text of an agent, without control characters."""

    source: "AnswerSource"
    """Where the text was found."""

    text: str
    """The text."""

    truncated: NotRequired[bool]
    """Whether the text was cut."""


class TextAnswer(AnswerText):
    """The job succeeded, and this is its answer."""

    kind: Literal["text"]


class NoAnswerAnswer(TypedDict):
    """The job succeeded without an answer."""

    kind: Literal["no_answer"]

    reason: str
    """Why there is no answer."""


class FailedAnswer(TypedDict):
    """The job failed. Its text until then is not an answer, but may be useful."""

    kind: Literal["failed"]

    reason: str
    """How the job ended, and the error message of the agent."""

    source: NotRequired["AnswerSource"]
    """Where the text was found."""

    text: NotRequired[str]
    """The text."""

    truncated: NotRequired[bool]
    """Whether the text was cut."""


class UnknownAnswer(TypedDict):
    """An answer that only a newer hearback knows."""

    kind: Literal["unknown"]


Answer: TypeAlias = TextAnswer | NoAnswerAnswer | FailedAnswer | UnknownAnswer
"""The answer of a prompt job. Every job that `ask` started has one when it has ended."""


class AttemptDocument(TypedDict):
    """One attempt to notify the owner of a job."""

    at: str
    """When it was begun (RFC 3339)."""

    ended_at: NotRequired[str | None]
    """When it failed (RFC 3339); absent if it succeeded, or its process died."""

    error: NotRequired[str | None]
    """Why it failed."""

    sink: NotRequired[str | None]
    """The sink."""


class AttendParams(TypedDict):
    """What `attend` and `unattend` take: one of the two."""

    all: NotRequired[bool]
    """Every session."""

    session: NotRequired["Session | None"]
    """This session."""


class CancelParams(TypedDict):
    """What the notification `cancel` of a host takes."""

    id: "RequestId"
    """The `id` of a request that is not answered yet."""


class ChangedMessageDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    changed: bool
    """Whether the command changed anything."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    message: int
    """The number of the message."""

    session: "Session"
    """The session of the message."""


class CheckDocument(TypedDict):
    """One check of `doctor`."""

    level: str
    """`ok`, `warn`, `fail`, or `skip` if the check was not made."""

    message: str
    """The finding."""

    name: str
    """Its name, which never changes."""

    tip: NotRequired[str | None]
    """What to do about it."""


class ClaimDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    attempt: int
    """The number of this attempt, from 1."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    id: str
    """The id of the delivery, which never changes."""

    kind: "ClaimKind"
    """`follow_up`."""

    payload: "CloudEvent"
    """What a sink would get."""

    token: str
    """What acknowledges or releases it."""

    until: str
    """Until when no other caller gets it (RFC 3339)."""


class ClaimedDocument(TypedDict):
    """What `turn.claim` answers."""

    format: int
    """The version of this document."""

    items: list["ItemDocument"]
    """What the turn holds besides, from now on."""

    text: NotRequired[str | None]
    """The items as text for the agent; absent without an item."""


class ClosedDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    changed: bool
    """Whether the command changed anything."""

    delivery: str
    """The id of the delivery."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    reason: NotRequired[str | None]
    """Why it changed nothing."""


class CloudEvent(TypedDict):
    """A document in its envelope: CloudEvents 1.0, in JSON."""

    data: "Delivery"
    """The document."""

    datacontenttype: str
    """The media type of `data`."""

    id: str
    """The id of the document in `data`."""

    source: str
    """The sender."""

    specversion: str
    """The version of the envelope."""

    subject: str
    """What the event is about: for a follow-up, the job."""

    time: NotRequired[str | None]
    """When it happened: for a follow-up, when the job ended (RFC 3339)."""

    type: str
    """The type of the event, such as `dev.hearback.job.ended.v1`."""


class CompletionsDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    script: str
    """The script for it."""

    shell: str
    """The shell."""


class ConformanceDocument(TypedDict):
    """One check of a plugin."""

    message: str
    """What the plugin did."""

    name: str
    """Its name, which never changes."""

    passed: bool
    """Whether the check passed."""


class Delivery(TypedDict):
    """A follow-up, as a sink gets it."""

    attempt: int
    """The number of this attempt, from 1."""

    depth: int
    """The length of the chain of follow-ups that led here, this one included."""

    format: int
    """The version of this document."""

    id: str
    """The id of the delivery, `<job>.end`: the same in every attempt, so that a repeat is recognisable."""

    job: "JobView"
    """The job that has ended."""

    late: bool
    """Whether the job ended longer ago than the setting `late_after`."""

    note: NotRequired["Note | None"]
    """A note about an interrupted turn of the session."""

    output: "OutputExcerpt"
    """The output of the job, cut to the setting `notice_bytes`."""

    session: NotRequired["Session | None"]
    """The session that gets it."""

    text: str
    """All of this as text for a model, with the output marked as data."""

    unreached: NotRequired[str | None]
    """Why the session could not be reached, if this sink gets the follow-up in its place. The session is notified
    later, as soon as that is possible."""


class DoctorDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    checks: list["CheckDocument"]
    """The checks."""

    durability: "Durability"
    """Whether records are written to survive a power cut."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    store: NotRequired["OsText | None"]
    """The path of the store, whether it exists or not."""

    version: str
    """The version of hearback."""


class DoneDocument(TypedDict):
    """An answer that says no more than that it is done."""

    format: int
    """The version of this document."""


class DrainingDocument(TypedDict):
    """A monitor restarts or stops, and no turn begins until that is over: the notification `draining`."""

    format: int
    """The version of this document."""

    kind: "StopKind"
    """What the monitor does."""

    over: bool
    """Whether it is over."""


class DueDocument(TypedDict):
    """Something became due for a session while a turn of this host runs there: the notification `due`."""

    count: int
    """How much is due now. `turn.claim` takes it; otherwise it comes after the turn."""

    format: int
    """The version of this document."""

    session: "Session"
    """The session."""

    turn: str
    """The token of the turn."""


class EffectiveSetting(TypedDict):
    """One setting as it is in force."""

    name: str
    """Its name in the settings file."""

    source: "SettingSource"
    """Where that comes from."""

    value: NotRequired[str | None]
    """Its value, as it could be written there; absent where there is none."""

    variable: NotRequired[str | None]
    """The variable that sets it, if one does."""


class ErrorDetail(TypedDict):
    """Why a command failed."""

    kind: "ErrorKind"
    """What kind of error it is. It decides the exit code."""

    message: str
    """What failed, and why, for people."""

    subject: NotRequired[str | None]
    """Which job or delivery it is about, as the caller named it; its id if the caller did not."""

    tip: NotRequired[str | None]
    """What to try."""


class ErrorDocument(TypedDict):
    """What a command prints with `--json` when it failed and there is nothing else to say."""

    error: "ErrorDetail"
    """Why the command failed."""

    format: int
    """The version of this document."""


class EventDocumentBase(TypedDict):
    """What every `EventDocument` has."""

    at: str
    """When it happened, by the clock of that moment."""

    cursor: str
    """What to pass to `--since` to read on behind it."""

    format: int
    """The version of this document."""

    id: str
    """Its identity. An event that is read again has the same one."""

    job: NotRequired["JobView | None"]
    """The job, as it is now."""

    session: NotRequired["Session | None"]
    """Whose job or session it is."""


class LaunchedEventDocument(EventDocumentBase):
    """A job is on disk: its owner will hear of it."""

    type: Literal["launched"]


class StartedEventDocument(EventDocumentBase):
    """Its command runs."""

    type: Literal["started"]


class KillRequestedEventDocument(EventDocumentBase):
    """A kill was requested."""

    by: "KilledBy"
    """By whom."""

    reason: NotRequired[str | None]
    """Why."""

    type: Literal["kill_requested"]


class OutputEventDocument(EventDocumentBase):
    """It has printed more. There is no fact behind it, so it is told once, and only to a reader that is there and asks
    for it."""

    last_line: NotRequired[str | None]
    """The last line that is not blank, cut to 200 characters."""

    type: Literal["output"]


class EndedEventDocument(EventDocumentBase):
    """It has ended."""

    type: Literal["ended"]


class NotToldEventDocument(EventDocumentBase):
    """Its owner was not reached, and another attempt will be made."""

    attempt: int
    """The number of the attempt."""

    reason: NotRequired[str | None]
    """Why not."""

    sink: NotRequired[str | None]
    """The sink."""

    type: Literal["not_told"]


class DeadLetterEventDocument(EventDocumentBase):
    """Its owner was not reached, and no further attempt will be made until a person acts."""

    attempt: int
    """The number of the attempt."""

    reason: NotRequired[str | None]
    """Why not."""

    sink: NotRequired[str | None]
    """The sink."""

    type: Literal["dead_letter"]


class RetriedEventDocument(EventDocumentBase):
    """A person had a dead letter tried again."""

    type: Literal["retried"]


class ToldEventDocument(EventDocumentBase):
    """Its owner has it, or will not get it."""

    how: "ToldHow"
    """How."""

    type: Literal["told"]


class SettledEventDocument(EventDocumentBase):
    """Nothing more will happen to the job."""

    type: Literal["settled"]


class TurnBegunEventDocument(EventDocumentBase):
    """A turn of a session has begun."""

    cause: "TurnCause"
    """What it is for."""

    turn: int
    """Its number."""

    type: Literal["turn_begun"]


class TurnEndedEventDocument(EventDocumentBase):
    """A turn of a session has ended."""

    how: "TurnHow"
    """How."""

    turn: int
    """Its number."""

    type: Literal["turn_ended"]


class MessageQueuedEventDocument(EventDocumentBase):
    """A message waits for a session."""

    message: int
    """Its number."""

    type: Literal["message_queued"]


class MessageNotDeliveredEventDocument(EventDocumentBase):
    """A message was not delivered."""

    dead_letter: bool
    """Whether a person has to act before another attempt is made."""

    message: int
    """Its number."""

    reason: str
    """Why not."""

    type: Literal["message_not_delivered"]


class MessageClosedEventDocument(EventDocumentBase):
    """Nothing more is to be done about a message."""

    how: "MessageHow"
    """What became of it."""

    message: int
    """Its number."""

    type: Literal["message_closed"]


EventDocument: TypeAlias = (
    LaunchedEventDocument | StartedEventDocument | KillRequestedEventDocument | OutputEventDocument | EndedEventDocument
    | NotToldEventDocument | DeadLetterEventDocument | RetriedEventDocument | ToldEventDocument | SettledEventDocument |
    TurnBegunEventDocument | TurnEndedEventDocument | MessageQueuedEventDocument | MessageNotDeliveredEventDocument |
    MessageClosedEventDocument
)
"""One line of `events`: something that happened."""


class EventsEndedDocument(TypedDict):
    """Why a subscription ended that the host did not stop: the notification `events.ended`."""

    error: "ErrorDetail"
    """Why."""

    format: int
    """The version of this document."""

    subscription: int
    """The subscription."""


class EventsParams(TypedDict):
    """What `events` takes."""

    session: NotRequired["Session | None"]
    """Only what happens to this session and its jobs."""

    since: NotRequired[str | None]
    """The `cursor` of an event, `beginning` or `now`; by default `now`."""


class EventsStopParams(TypedDict):
    """What `events.stop` takes."""

    subscription: int
    """The subscription."""


class ExitedExit(TypedDict):
    """It exited with this code."""

    code: int
    """The code."""

    kind: Literal["exited"]


class SignaledExit(TypedDict):
    """A signal killed it."""

    core: bool
    """Whether it left a core dump."""

    kind: Literal["signaled"]

    signal: int
    """The signal's number."""


class UnknownExit(TypedDict):
    """An exit that only a newer build knows."""

    kind: Literal["unknown"]


Exit: TypeAlias = ExitedExit | SignaledExit | UnknownExit
"""How a process that hearback terminated or killed then ended."""


class ExitCodeDocument(TypedDict):
    """One exit code of some commands."""

    code: str
    """The code, or several in words, such as `128+n`."""

    meaning: str
    """What it means."""

    of: str
    """The commands, in words."""


class ExitCodesDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    codes: list["ExitCodeDocument"]
    """The codes, those of one group of commands after those of another."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""


class ExpectationDocument(TypedDict):
    """What an owner can expect when its job ends."""

    kind: str
    """`woken`: its session is woken. `woken_when_closed`: its session is woken once it is closed. `sent`: a sink that
    starts no turn is notified. `fetch`: the follow-up waits until the session fetches it. `unreachable`: the sink
    cannot be used here. `nothing`: no follow-up is wanted."""

    reason: NotRequired[str | None]
    """Why its session is not woken, if there is a reason to give."""

    sink: NotRequired[str | None]
    """The sink, if there is one."""

    text: str
    """All of this in words."""


class FollowUpView(TypedDict):
    """The follow-up that notifies the owner of a job."""

    attempts: NotRequired[int]
    """How many attempts were made to deliver it."""

    delivery: NotRequired[str | None]
    """The id of its delivery, which never changes; absent when no follow-up is wanted."""

    error: NotRequired[str | None]
    """Why the last attempt failed."""

    next_attempt_at: NotRequired[str | None]
    """When the next attempt is due (RFC 3339); absent if none was made yet, and where none will be made by itself."""

    policy: NotRequired["NotifyPolicy | None"]
    """When the owner wants to be notified."""

    sink: NotRequired[str | None]
    """The sink of the last attempt."""

    sinks: NotRequired[list[str]]
    """The sinks that it goes to, in the order in which they are tried."""

    state: "FollowUpState"
    """The state of the follow-up."""


class FollowUps(TypedDict):
    """Several follow-ups of one session, as a sink gets them that starts a turn: one turn tells of all. Each has an
    identity and attempts of its own. One that is repeated may come alone, or with others, so a receiver that remembers
    identities remembers those in `deliveries`."""

    deliveries: list["Delivery"]
    """The follow-ups, in the order in which their jobs ended."""

    depth: int
    """The length of the longest chain of follow-ups that led here."""

    format: int
    """The version of this document."""

    id: str
    """The id of this event, `<session>.turn.<number>`. It is used once: a repeat has another."""

    note: NotRequired["Note | None"]
    """A note about an interrupted turn of the session."""

    session: "Session"
    """The session that gets them."""

    text: str
    """Note and follow-ups as text for a model."""


class FollowUpsDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    jobs: list["JobView"]
    """The jobs whose follow-up is pending, leased or a dead letter; the one that ended first comes first."""

    problems: NotRequired[list["Problem"]]
    """Jobs that could not be read. Their follow-ups may be pending."""


class Gap(TypedDict):
    """A missing part of the output. Offsets count all output, also what was dropped."""

    end: int
    """The first byte after the gap."""

    reason: "GapReason"
    """Why it is missing."""

    start: int
    """The first byte that is missing."""


class HappenedDocumentBase(TypedDict):
    """What every `HappenedDocument` has."""

    at: str
    """When it happened, by the clock of that moment."""

    cursor: str
    """What to pass to `--since` to read on behind it."""

    format: int
    """The version of this document."""

    id: str
    """Its identity. An event that is read again has the same one."""

    job: NotRequired["JobView | None"]
    """The job, as it is now."""

    session: NotRequired["Session | None"]
    """Whose job or session it is."""

    subscription: int
    """The subscription."""


class LaunchedHappenedDocument(HappenedDocumentBase):
    """A job is on disk: its owner will hear of it."""

    type: Literal["launched"]


class StartedHappenedDocument(HappenedDocumentBase):
    """Its command runs."""

    type: Literal["started"]


class KillRequestedHappenedDocument(HappenedDocumentBase):
    """A kill was requested."""

    by: "KilledBy"
    """By whom."""

    reason: NotRequired[str | None]
    """Why."""

    type: Literal["kill_requested"]


class OutputHappenedDocument(HappenedDocumentBase):
    """It has printed more. There is no fact behind it, so it is told once, and only to a reader that is there and asks
    for it."""

    last_line: NotRequired[str | None]
    """The last line that is not blank, cut to 200 characters."""

    type: Literal["output"]


class EndedHappenedDocument(HappenedDocumentBase):
    """It has ended."""

    type: Literal["ended"]


class NotToldHappenedDocument(HappenedDocumentBase):
    """Its owner was not reached, and another attempt will be made."""

    attempt: int
    """The number of the attempt."""

    reason: NotRequired[str | None]
    """Why not."""

    sink: NotRequired[str | None]
    """The sink."""

    type: Literal["not_told"]


class DeadLetterHappenedDocument(HappenedDocumentBase):
    """Its owner was not reached, and no further attempt will be made until a person acts."""

    attempt: int
    """The number of the attempt."""

    reason: NotRequired[str | None]
    """Why not."""

    sink: NotRequired[str | None]
    """The sink."""

    type: Literal["dead_letter"]


class RetriedHappenedDocument(HappenedDocumentBase):
    """A person had a dead letter tried again."""

    type: Literal["retried"]


class ToldHappenedDocument(HappenedDocumentBase):
    """Its owner has it, or will not get it."""

    how: "ToldHow"
    """How."""

    type: Literal["told"]


class SettledHappenedDocument(HappenedDocumentBase):
    """Nothing more will happen to the job."""

    type: Literal["settled"]


class TurnBegunHappenedDocument(HappenedDocumentBase):
    """A turn of a session has begun."""

    cause: "TurnCause"
    """What it is for."""

    turn: int
    """Its number."""

    type: Literal["turn_begun"]


class TurnEndedHappenedDocument(HappenedDocumentBase):
    """A turn of a session has ended."""

    how: "TurnHow"
    """How."""

    turn: int
    """Its number."""

    type: Literal["turn_ended"]


class MessageQueuedHappenedDocument(HappenedDocumentBase):
    """A message waits for a session."""

    message: int
    """Its number."""

    type: Literal["message_queued"]


class MessageNotDeliveredHappenedDocument(HappenedDocumentBase):
    """A message was not delivered."""

    dead_letter: bool
    """Whether a person has to act before another attempt is made."""

    message: int
    """Its number."""

    reason: str
    """Why not."""

    type: Literal["message_not_delivered"]


class MessageClosedHappenedDocument(HappenedDocumentBase):
    """Nothing more is to be done about a message."""

    how: "MessageHow"
    """What became of it."""

    message: int
    """Its number."""

    type: Literal["message_closed"]


HappenedDocument: TypeAlias = (
    LaunchedHappenedDocument | StartedHappenedDocument | KillRequestedHappenedDocument | OutputHappenedDocument |
    EndedHappenedDocument | NotToldHappenedDocument | DeadLetterHappenedDocument | RetriedHappenedDocument |
    ToldHappenedDocument | SettledHappenedDocument | TurnBegunHappenedDocument | TurnEndedHappenedDocument |
    MessageQueuedHappenedDocument | MessageNotDeliveredHappenedDocument | MessageClosedHappenedDocument
)
"""Something happened: the notification `event`."""


class HelloDocument(TypedDict):
    """The first line, from the server."""

    format: int
    """The version of this document."""

    home: str
    """Where the store is."""

    pid: int
    """The process of the server."""

    protocol: int
    """The version of the protocol. A host that does not know it ends."""

    version: str
    """The version of hearback."""


class InboxDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    messages: list["MessageDocument"]
    """The messages, in order for each session."""


class InstallDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    commands: list["OrderDocument"]
    """The commands of the service manager that were run, or with `--print` would be."""

    done: bool
    """Whether the service was installed or removed; false with `--print`."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    file: "OsText"
    """The file that describes the service."""

    format: int
    """The version of this document."""

    manager: "ServiceManager"
    """The service manager."""

    name: str
    """The name of the service."""

    text: str
    """The content of that file."""


class InterruptDocument(TypedDict):
    """A turn is to end: the notification `interrupt`."""

    format: int
    """The version of this document."""

    reason: "Interruption"
    """Why."""

    session: "Session"
    """The session."""

    turn: str
    """The token of the turn."""


class InterruptedDocument(TypedDict):
    """A turn that was interrupted."""

    at: NotRequired[str | None]
    """When it was interrupted, if known (RFC 3339)."""

    reason: "Interruption"
    """Why it was interrupted."""

    turn: int
    """The number of the turn."""


class ItemDocument(TypedDict):
    """A follow-up or a message that this host holds."""

    attempt: int
    """The number of this attempt, from 1."""

    id: str
    """The id of the delivery: the same in every attempt, so that a repeat is recognisable."""

    kind: "ItemKind"
    """What it is."""

    payload: Any
    """What a sink gets: a follow-up or a message in its envelope."""

    token: str
    """Names the claim, for `ack` and `release`. It is used once."""


class JobView(TypedDict):
    """One job, as `show --json`, `list --json` and `wait --json` print it. A field without a value is left out."""

    agent: NotRequired["LaunchingAgent | None"]
    """The agent whose session launched it, if it was found."""

    answer: NotRequired["Answer | None"]
    """The answer of a job that `ask` started, once it has ended."""

    bound: NotRequired[bool]
    """Whether a monitor that restarts or stops kills it first (`--bound`)."""

    bound_to: NotRequired[str | None]
    """The unit of a service manager, or the Job Object, in which it was launched and with which it ends."""

    command: NotRequired["Command | None"]
    """The command that it runs; absent when its record cannot be read."""

    cwd: NotRequired["OsText | None"]
    """Its working directory."""

    ended_at: NotRequired[str | None]
    """When it ended, as the supervisor observed it (RFC 3339)."""

    follow_up: "FollowUpView"
    """The follow-up that notifies its owner."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The id of the job."""

    idle_timeout_ms: NotRequired[int | None]
    """The longest time without output, in milliseconds; absent when there is no limit."""

    key: NotRequired[str | None]
    """Its key, from `--key`."""

    label: NotRequired[str | None]
    """Its label, from `--label`."""

    launched_at: NotRequired[str | None]
    """When it was launched (RFC 3339)."""

    mcp: NotRequired[bool]
    """Whether it was launched through the MCP server."""

    notes: NotRequired[list[str]]
    """Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine."""

    out_of_sight: NotRequired[str | None]
    """The pid namespace in which processes of it may still run: they could not be seen when its end was recorded."""

    outcome: NotRequired["Outcome | None"]
    """How it ended."""

    output: "OutputView"
    """Its output."""

    paused: NotRequired[bool]
    """Whether its main process is paused, by a signal or a suspend. Its limits still count."""

    pid: NotRequired[int | None]
    """The pid of its main process, to show to people. Pids are reused, so do not send signals to it."""

    prompt: NotRequired[str | None]
    """The prompt of a job that `ask` started with `--prompt`. It is part of the command, too."""

    ran_ms: NotRequired[int | None]
    """How long it ran, in milliseconds, without the time in which the machine slept."""

    session: NotRequired["Session | None"]
    """The session that owns it."""

    started_at: NotRequired[str | None]
    """When its main process was started (RFC 3339)."""

    state: "StateWord"
    """The state of the job."""

    survives: NotRequired[list[str]]
    """What it survives."""

    survivors: NotRequired[list[int]]
    """Pids of processes that outlived it and still run: they could not be killed, or were kept."""

    takes_input: NotRequired[bool]
    """Whether other processes can write to its input (`--stdin`)."""

    timeout_ms: NotRequired[int | None]
    """The longest time that it may run, in milliseconds; absent when there is no limit."""

    usage: NotRequired["Usage | None"]
    """The CPU time and memory that it used."""


class JobViewReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    agent: NotRequired["LaunchingAgent | None"]
    """The agent whose session launched it, if it was found."""

    answer: NotRequired["Answer | None"]
    """The answer of a job that `ask` started, once it has ended."""

    bound: NotRequired[bool]
    """Whether a monitor that restarts or stops kills it first (`--bound`)."""

    bound_to: NotRequired[str | None]
    """The unit of a service manager, or the Job Object, in which it was launched and with which it ends."""

    command: NotRequired["Command | None"]
    """The command that it runs; absent when its record cannot be read."""

    cwd: NotRequired["OsText | None"]
    """Its working directory."""

    ended_at: NotRequired[str | None]
    """When it ended, as the supervisor observed it (RFC 3339)."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    follow_up: "FollowUpView"
    """The follow-up that notifies its owner."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The id of the job."""

    idle_timeout_ms: NotRequired[int | None]
    """The longest time without output, in milliseconds; absent when there is no limit."""

    key: NotRequired[str | None]
    """Its key, from `--key`."""

    label: NotRequired[str | None]
    """Its label, from `--label`."""

    launched_at: NotRequired[str | None]
    """When it was launched (RFC 3339)."""

    mcp: NotRequired[bool]
    """Whether it was launched through the MCP server."""

    notes: NotRequired[list[str]]
    """Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine."""

    out_of_sight: NotRequired[str | None]
    """The pid namespace in which processes of it may still run: they could not be seen when its end was recorded."""

    outcome: NotRequired["Outcome | None"]
    """How it ended."""

    output: "OutputView"
    """Its output."""

    paused: NotRequired[bool]
    """Whether its main process is paused, by a signal or a suspend. Its limits still count."""

    pid: NotRequired[int | None]
    """The pid of its main process, to show to people. Pids are reused, so do not send signals to it."""

    prompt: NotRequired[str | None]
    """The prompt of a job that `ask` started with `--prompt`. It is part of the command, too."""

    ran_ms: NotRequired[int | None]
    """How long it ran, in milliseconds, without the time in which the machine slept."""

    session: NotRequired["Session | None"]
    """The session that owns it."""

    started_at: NotRequired[str | None]
    """When its main process was started (RFC 3339)."""

    state: "StateWord"
    """The state of the job."""

    survives: NotRequired[list[str]]
    """What it survives."""

    survivors: NotRequired[list[int]]
    """Pids of processes that outlived it and still run: they could not be killed, or were kept."""

    takes_input: NotRequired[bool]
    """Whether other processes can write to its input (`--stdin`)."""

    timeout_ms: NotRequired[int | None]
    """The longest time that it may run, in milliseconds; absent when there is no limit."""

    usage: NotRequired["Usage | None"]
    """The CPU time and memory that it used."""


class KillDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    already_ended: bool
    """Whether the job had ended before the kill."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The job."""

    job: "JobView"
    """The job, as it is now."""

    leftovers_killed: NotRequired[int]
    """How many processes that had outlived the job were killed now."""

    log: NotRequired["LogDocument | None"]
    """The end of its output, as much as `--output` says."""

    out_of_sight: NotRequired[str | None]
    """The pid namespace in which processes of it may still run: they cannot be seen from here."""

    outcome: NotRequired["Outcome | None"]
    """How it ended."""

    survivors: NotRequired[list[int]]
    """Pids of processes that could not be killed."""


class KillParams(TypedDict):
    """What `kill` takes."""

    force: NotRequired[bool]
    """Kill a supervisor that does not answer, too."""

    grace_ms: NotRequired[int | None]
    """How long its processes have between being terminated and being killed."""

    jobs: list[str]
    """The jobs. If one of them is not found, none is killed."""

    reason: NotRequired[str | None]
    """Why, for the record."""

    session: NotRequired["Session | None"]
    """Only jobs of this session, which kills them."""


class KilledDocument(TypedDict):
    """What `kill` answers."""

    errors: NotRequired[list["ErrorDetail"]]
    """Why others are not known to have ended."""

    format: int
    """The version of this document."""

    jobs: list["KillDocumentReply"]
    """The jobs that have ended, each with why something of it is left, if that is so."""


class LaunchDocument(TypedDict):
    """What `launch --json` prints: the job, and what to expect when it ends."""

    agent: NotRequired["LaunchingAgent | None"]
    """The agent whose session launched it, if it was found."""

    answer: NotRequired["Answer | None"]
    """The answer of a job that `ask` started, once it has ended."""

    bound: NotRequired[bool]
    """Whether a monitor that restarts or stops kills it first (`--bound`)."""

    bound_to: NotRequired[str | None]
    """The unit of a service manager, or the Job Object, in which it was launched and with which it ends."""

    command: NotRequired["Command | None"]
    """The command that it runs; absent when its record cannot be read."""

    created: bool
    """Whether this launch made it; false if its key names a job that was launched before."""

    cwd: NotRequired["OsText | None"]
    """Its working directory."""

    ended_at: NotRequired[str | None]
    """When it ended, as the supervisor observed it (RFC 3339)."""

    expect: "ExpectationDocument"
    """What its owner can expect when it ends."""

    follow_up: "FollowUpView"
    """The follow-up that notifies its owner."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The id of the job."""

    idle_timeout_ms: NotRequired[int | None]
    """The longest time without output, in milliseconds; absent when there is no limit."""

    key: NotRequired[str | None]
    """Its key, from `--key`."""

    label: NotRequired[str | None]
    """Its label, from `--label`."""

    launched_at: NotRequired[str | None]
    """When it was launched (RFC 3339)."""

    mcp: NotRequired[bool]
    """Whether it was launched through the MCP server."""

    notes: NotRequired[list[str]]
    """Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine."""

    out_of_sight: NotRequired[str | None]
    """The pid namespace in which processes of it may still run: they could not be seen when its end was recorded."""

    outcome: NotRequired["Outcome | None"]
    """How it ended."""

    output: "OutputView"
    """Its output."""

    paused: NotRequired[bool]
    """Whether its main process is paused, by a signal or a suspend. Its limits still count."""

    pid: NotRequired[int | None]
    """The pid of its main process, to show to people. Pids are reused, so do not send signals to it."""

    prompt: NotRequired[str | None]
    """The prompt of a job that `ask` started with `--prompt`. It is part of the command, too."""

    ran_ms: NotRequired[int | None]
    """How long it ran, in milliseconds, without the time in which the machine slept."""

    session: NotRequired["Session | None"]
    """The session that owns it."""

    started_at: NotRequired[str | None]
    """When its main process was started (RFC 3339)."""

    state: "StateWord"
    """The state of the job."""

    survives: NotRequired[list[str]]
    """What it survives."""

    survivors: NotRequired[list[int]]
    """Pids of processes that outlived it and still run: they could not be killed, or were kept."""

    takes_input: NotRequired[bool]
    """Whether other processes can write to its input (`--stdin`)."""

    timeout_ms: NotRequired[int | None]
    """The longest time that it may run, in milliseconds; absent when there is no limit."""

    usage: NotRequired["Usage | None"]
    """The CPU time and memory that it used."""


class LaunchDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    agent: NotRequired["LaunchingAgent | None"]
    """The agent whose session launched it, if it was found."""

    answer: NotRequired["Answer | None"]
    """The answer of a job that `ask` started, once it has ended."""

    bound: NotRequired[bool]
    """Whether a monitor that restarts or stops kills it first (`--bound`)."""

    bound_to: NotRequired[str | None]
    """The unit of a service manager, or the Job Object, in which it was launched and with which it ends."""

    command: NotRequired["Command | None"]
    """The command that it runs; absent when its record cannot be read."""

    created: bool
    """Whether this launch made it; false if its key names a job that was launched before."""

    cwd: NotRequired["OsText | None"]
    """Its working directory."""

    ended_at: NotRequired[str | None]
    """When it ended, as the supervisor observed it (RFC 3339)."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    expect: "ExpectationDocument"
    """What its owner can expect when it ends."""

    follow_up: "FollowUpView"
    """The follow-up that notifies its owner."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The id of the job."""

    idle_timeout_ms: NotRequired[int | None]
    """The longest time without output, in milliseconds; absent when there is no limit."""

    key: NotRequired[str | None]
    """Its key, from `--key`."""

    label: NotRequired[str | None]
    """Its label, from `--label`."""

    launched_at: NotRequired[str | None]
    """When it was launched (RFC 3339)."""

    mcp: NotRequired[bool]
    """Whether it was launched through the MCP server."""

    notes: NotRequired[list[str]]
    """Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine."""

    out_of_sight: NotRequired[str | None]
    """The pid namespace in which processes of it may still run: they could not be seen when its end was recorded."""

    outcome: NotRequired["Outcome | None"]
    """How it ended."""

    output: "OutputView"
    """Its output."""

    paused: NotRequired[bool]
    """Whether its main process is paused, by a signal or a suspend. Its limits still count."""

    pid: NotRequired[int | None]
    """The pid of its main process, to show to people. Pids are reused, so do not send signals to it."""

    prompt: NotRequired[str | None]
    """The prompt of a job that `ask` started with `--prompt`. It is part of the command, too."""

    ran_ms: NotRequired[int | None]
    """How long it ran, in milliseconds, without the time in which the machine slept."""

    session: NotRequired["Session | None"]
    """The session that owns it."""

    started_at: NotRequired[str | None]
    """When its main process was started (RFC 3339)."""

    state: "StateWord"
    """The state of the job."""

    survives: NotRequired[list[str]]
    """What it survives."""

    survivors: NotRequired[list[int]]
    """Pids of processes that outlived it and still run: they could not be killed, or were kept."""

    takes_input: NotRequired[bool]
    """Whether other processes can write to its input (`--stdin`)."""

    timeout_ms: NotRequired[int | None]
    """The longest time that it may run, in milliseconds; absent when there is no limit."""

    usage: NotRequired["Usage | None"]
    """The CPU time and memory that it used."""


class LaunchParams(TypedDict):
    """What `launch` takes: `command` or `shell`, and how to run it."""

    command: NotRequired[list[str] | None]
    """A program and its arguments, which no shell reads."""

    cwd: NotRequired[str | None]
    """The working directory, as an absolute path; by default that of the server."""

    env: NotRequired[dict[str, str | None]]
    """Variables that are set, or with `null` removed. The rest is the environment of the server."""

    grace_ms: NotRequired[int | None]
    """How long its processes have between being terminated and being killed."""

    idle_timeout_ms: NotRequired[int | None]
    """How long it may be silent."""

    key: NotRequired[str | None]
    """Makes the launch repeatable: the same key names the same job."""

    label: NotRequired[str | None]
    """A name for people."""

    log_cap_bytes: NotRequired[int | None]
    """How much of its output is kept; `null` for all. At least 1 MiB."""

    notify: NotRequired["NotifyPolicy | None"]
    """When its owner is notified."""

    session: NotRequired["Session | None"]
    """The session that owns the job; by default that of the environment."""

    shell: NotRequired[str | None]
    """Text for a shell."""

    sinks: NotRequired[list[str] | None]
    """Where the follow-up goes, in this order. Left out, that of a session comes to a host that attends it."""

    timeout_ms: NotRequired[int | None]
    """How long it may run; `null` for no limit. Left out, the settings decide."""


class LaunchingAgent(TypedDict):
    """The agent that launched a job, as it was found at launch. Its sessions belong to its directory, and its program
    need not be on the `PATH` of the process that wakes it."""

    cwd: NotRequired["OsText | None"]
    """Its working directory."""

    name: str
    """Its name, such as `claude`."""

    process: NotRequired["ProcessIdentity | None"]
    """Its process. While that lives, its session is open there."""

    program: NotRequired["OsText | None"]
    """Its program."""


class ListDocument(TypedDict):
    """What `list --json` prints."""

    format: int
    """The version of this document."""

    jobs: list["JobView"]
    """The jobs, newest first."""

    problems: NotRequired[list["Problem"]]
    """Jobs that could not be read."""

    total: NotRequired[int | None]
    """How many jobs there are in all; absent with a filter, or when there are too many to count."""

    truncated: bool
    """Whether more jobs may match: only the open ones and the newest of history were listed."""


class ListDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    jobs: list["JobView"]
    """The jobs, newest first."""

    problems: NotRequired[list["Problem"]]
    """Jobs that could not be read."""

    total: NotRequired[int | None]
    """How many jobs there are in all; absent with a filter, or when there are too many to count."""

    truncated: bool
    """Whether more jobs may match: only the open ones and the newest of history were listed."""


class ListParams(TypedDict):
    """What `list` takes."""

    all: NotRequired[bool]
    """The whole history. Otherwise what is open, and the newest 20 of it."""

    label: NotRequired[str | None]
    """Only jobs with this label."""

    limit: NotRequired[int | None]
    """At most so many, the newest."""

    outcome: NotRequired[str | None]
    """Only jobs that ended so: a kind of `outcome`."""

    session: NotRequired["Session | None"]
    """Only jobs of this session."""

    state: NotRequired["StateWord | None"]
    """Only jobs in this state."""


class LogDocument(TypedDict):
    """What `logs --json` prints."""

    bytes: int
    """The size of all output so far."""

    dropped: int
    """How many of these bytes were dropped."""

    end: int
    """Where this document ends; pass it as `--offset` to continue reading."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The job."""

    offset: int
    """Where this document begins in the output, in bytes."""

    outcome: NotRequired["Outcome | None"]
    """How the job ended; only in a document that reaches the end of the output of an ended job."""

    parts: list["LogPart"]
    """The output from `offset` to `end`, in order. Each part begins where the one before it ends."""


class LogDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    bytes: int
    """The size of all output so far."""

    dropped: int
    """How many of these bytes were dropped."""

    end: int
    """Where this document ends; pass it as `--offset` to continue reading."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The job."""

    offset: int
    """Where this document begins in the output, in bytes."""

    outcome: NotRequired["Outcome | None"]
    """How the job ended; only in a document that reaches the end of the output of an ended job."""

    parts: list["LogPart"]
    """The output from `offset` to `end`, in order. Each part begins where the one before it ends."""


class LogPart(TypedDict):
    """A part of the output: text, or the reason why it is missing."""

    end: int
    """Where it ends."""

    missing: NotRequired["Missing | None"]
    """Why there is no text. A gap of the log is widened to whole lines."""

    offset: int
    """Where it begins in the output, in bytes."""

    text: NotRequired[str | None]
    """The text. Bytes that are not UTF-8 become replacement characters, and a secret its name, so its length is not
    always that of the part."""


class MessageDocument(TypedDict):
    """A message that waits, or that is a dead letter."""

    attempts: int
    """How many attempts were made to deliver it."""

    dead_letter: bool
    """Whether hearback gave up its delivery, or holds it for a person: `error` says why."""

    error: NotRequired[str | None]
    """Why the last attempt failed."""

    message: int
    """The number of the message."""

    sent_at: NotRequired[str | None]
    """When it was sent (RFC 3339)."""

    session: "Session"
    """The session that gets the message."""

    text: NotRequired[str | None]
    """The text of the message; absent when it cannot be read."""


class DeliveredMessageHow(TypedDict):
    """The agent accepted it."""

    kind: Literal["delivered"]


class ExpiredMessageHow(TypedDict):
    """It was not delivered within `expire_after`."""

    kind: Literal["expired"]


class OvertakenMessageHow(TypedDict):
    """A newer message interrupted its turn."""

    kind: Literal["overtaken"]


class DiscardedMessageHow(TypedDict):
    """A caller discarded it."""

    kind: Literal["discarded"]


class UnknownMessageHow(TypedDict):
    """An end that only a newer build knows. Nothing more is to be done about it all the same."""

    kind: Literal["unknown"]


MessageHow: TypeAlias = (
    DeliveredMessageHow | ExpiredMessageHow | OvertakenMessageHow | DiscardedMessageHow | UnknownMessageHow
)
"""What became of a message."""


class MessagePayload(TypedDict):
    """A message, as a sink gets it; or, without a message, an interrupted turn to continue."""

    attempt: int
    """The number of this attempt, from 1."""

    cwd: NotRequired["OsText | None"]
    """The working directory for the agent."""

    depth: int
    """The length of the chain of follow-ups that led here."""

    destination: NotRequired[str | None]
    """Where the host shows the agent's messages."""

    format: int
    """The version of this document."""

    id: str
    """The id of the delivery: the same in every attempt, so that a repeat is recognisable."""

    message: NotRequired[str | None]
    """The message as it was sent; absent when an interrupted turn continues."""

    note: NotRequired["Note | None"]
    """A note about an interrupted turn of the session."""

    session: "Session"
    """The session that gets it."""

    text: str
    """Note and message as text for a model."""


class MonitorDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    answers: bool
    """Whether it answers; false for one that is paused, or leaves what is due undone."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    pid: NotRequired[int | None]
    """The pid of the monitor."""

    running: bool
    """Whether a monitor is running."""

    service: bool
    """Whether a service manager runs the monitor."""

    sessions: list["SessionDocument"]
    """All known sessions."""

    settings: list["EffectiveSetting"]
    """The settings, as this command sees them."""

    started_at: NotRequired[str | None]
    """When the monitor started (RFC 3339)."""

    stopping: NotRequired["StopKind | None"]
    """What the monitor is about to do."""

    version: NotRequired[str | None]
    """The version of the monitor."""


class MonitorRequestDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    awaited_turns: NotRequired[int | None]
    """How many turns the monitor waits for, or waited for."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    ignored: bool
    """Whether the monitor ignored this repeat of an old request."""

    kind: "StopKind"
    """What was requested."""


class MonitorRunDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    stopped: NotRequired["StopKind | None"]
    """What it was requested to do; absent if it ended by itself, as with `--once`."""


class Note(TypedDict):
    """A note before the next message of a session, about an interrupted turn."""

    cause: NotRequired["TurnCause | None"]
    """What the turn was for."""

    format: int
    """The version of this document."""

    reason: NotRequired["Interruption | None"]
    """Why it was interrupted."""

    requested_restart: bool
    """Whether the turn itself requested the restart that interrupted it."""

    text: str
    """All of this as text for a model."""

    turn: NotRequired[int | None]
    """The number of the interrupted turn, if hearback recorded it."""


class Notice(TypedDict):
    """A notice to a destination that the monitor is about to restart or stop."""

    destination: str
    """The destination that is notified."""

    format: int
    """The version of this document."""

    id: str
    """The id of the notice."""

    kind: "StopKind"
    """What is about to happen."""

    sessions: list["Session"]
    """The sessions there that are in a turn."""

    text: str
    """All of this as text."""


class HelloNotification(TypedDict):

    method: Literal["hello"]

    params: "HelloDocument"


class TurnNotification(TypedDict):

    method: Literal["turn"]

    params: "TurnDocument"


class DueNotification(TypedDict):

    method: Literal["due"]

    params: "DueDocument"


class InterruptNotification(TypedDict):

    method: Literal["interrupt"]

    params: "InterruptDocument"


class DrainingNotification(TypedDict):

    method: Literal["draining"]

    params: "DrainingDocument"


class EventNotification(TypedDict):

    method: Literal["event"]

    params: "HappenedDocument"


class EventsEndedNotification(TypedDict):

    method: Literal["events.ended"]

    params: "EventsEndedDocument"


Notification: TypeAlias = (
    HelloNotification | TurnNotification | DueNotification | InterruptNotification | DrainingNotification |
    EventNotification | EventsEndedNotification
)
"""What the server tells without being asked."""


class OrderDocument(TypedDict):
    """A command of the service manager."""

    argv: list[str]
    """The program and its arguments."""

    error: NotRequired[str | None]
    """Why it failed; absent if it succeeded or may fail."""


class ExitedOutcome(TypedDict):
    """The command exited with this code. Windows codes keep all their 32 bits."""

    code: int
    """Zero is success."""

    kind: Literal["exited"]


class SignaledOutcome(TypedDict):
    """A signal that hearback did not send killed the command."""

    core: bool
    """Whether it left a core dump."""

    kind: Literal["signaled"]

    signal: int
    """The signal's number."""


class TimedOutOutcome(TypedDict):
    """The job exceeded its time limit."""

    exit: NotRequired["Exit | None"]
    """How its main process then ended, if that was observed."""

    kind: Literal["timed_out"]

    limit_ms: int
    """The limit, in milliseconds."""


class IdleTimedOutOutcome(TypedDict):
    """The job was without output for longer than its idle limit."""

    exit: NotRequired["Exit | None"]
    """How its main process then ended, if that was observed."""

    kind: Literal["idle_timed_out"]

    limit_ms: int
    """The limit, in milliseconds."""


class KilledOutcome(TypedDict):
    """The job was killed on request."""

    by: "KilledBy"
    """Who requested it."""

    exit: NotRequired["Exit | None"]
    """How its main process then ended, if that was observed."""

    kind: Literal["killed"]

    reason: NotRequired[str | None]
    """The reason that was given."""


class FailedToStartOutcome(TypedDict):
    """The command could not be started, and nothing ran."""

    error: "StartError"
    """Why it could not be started."""

    kind: Literal["failed_to_start"]


class LostOutcome(TypedDict):
    """How the job ended is unknown."""

    kind: Literal["lost"]

    reason: "LostReason"
    """Why that is unknown."""


class UnknownOutcome(TypedDict):
    """An outcome that only a newer hearback knows. Never a success."""

    kind: Literal["unknown"]


Outcome: TypeAlias = (
    ExitedOutcome | SignaledOutcome | TimedOutOutcome | IdleTimedOutOutcome | KilledOutcome | FailedToStartOutcome |
    LostOutcome | UnknownOutcome
)
"""How a job ended. A time limit, a kill and a failed start are outcomes with their own data, so that a caller need not
interpret exit codes. Only the supervisor, the parent of the target, records an exit; any other process may only record
`lost`."""


class OutputExcerpt(TypedDict):
    """The output of a job, cut to a budget and without control characters. Of a line that was overwritten, such as a
    progress bar, it has the last state."""

    bytes: int
    """The size of all output, in bytes."""

    head: str
    """The beginning of the output."""

    omitted: int
    """How many bytes are left out between head and tail."""

    tail: str
    """The end of the output; empty when the head is everything."""


class OutputParams(TypedDict):
    """What `output` takes: at most one of `offset`, `head` and `tail`."""

    head: NotRequired[int | None]
    """Only the first lines."""

    job: str
    """The job."""

    max_bytes: NotRequired[int | None]
    """At most so many bytes; by default 64 KiB, and never more than 4 MiB."""

    offset: NotRequired[int | None]
    """From this offset on."""

    session: NotRequired["Session | None"]
    """Only a job of this session, which has read how it ended if the answer says so."""

    tail: NotRequired[int | None]
    """Only the last lines."""


class OutputView(TypedDict):
    """The output of a job."""

    bytes: int
    """The size of all output, in bytes."""

    dropped: int
    """How many of these bytes were dropped."""

    gaps: NotRequired[list["Gap"]]
    """The dropped parts, in order."""

    last_line: NotRequired[str | None]
    """The last line that is not blank, cut to 200 characters; only where a preview is asked for, as by `list
    --preview`."""

    path: NotRequired["OsText | None"]
    """The path of the log, until the job is pruned. Where the file system has no second names for files, it changes
    when the job moves to the history."""


class PluginCheckDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    checks: list["ConformanceDocument"]
    """The checks."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    passed: bool
    """Whether all checks passed."""

    program: "OsText"
    """The program that was checked."""


class Problem(TypedDict):
    """A job that could not be processed."""

    error: str
    """What failed."""

    id: "JobId"
    """The job."""


class ProcessIdentity(TypedDict):
    """One process and no other: a pid is reused, a pid with the kernel's start token is not."""

    boot: NotRequired["BootId | None"]
    """The boot in which it was started."""

    pid: int
    """The number by which the system signals it."""

    scope: NotRequired[str | None]
    """Its pid namespace, where a system has several."""

    started: int
    """When the kernel says it was started, in the kernel's own units."""


class PruneDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    dry_run: bool
    """Whether this was a dry run, which changes nothing."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    problems: list["Problem"]
    """Jobs that could not be removed."""

    pruned: list["JobId"]
    """The jobs that were removed; in a dry run, the jobs that would be removed."""

    tidied: int
    """How many leftovers of crashes were removed."""


class ReadyDocument(TypedDict):
    """The first line of `events`: everything that happens from now on is read."""

    cursor: str
    """What to pass to `--since` to read on from here."""

    format: int
    """The version of this document."""

    type: "ReadyType"
    """`ready`."""


class ReconcileDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    dry_run: bool
    """Whether this was a dry run, which changes nothing."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    problems: list["Problem"]
    """Jobs whose records could not be updated."""

    steps: list["StepDocument"]
    """The steps that were done; in a dry run, the steps that would be done."""


class ReleaseParams(TypedDict):
    """What `release` takes. The item is free when its turn ends."""

    how: "ReleaseHow"
    """Why."""

    reason: NotRequired[str | None]
    """The same in words."""

    retry_after_ms: NotRequired[int | None]
    """When to offer it again; otherwise after a pause that grows. Not for `gone`."""

    token: str
    """The token of the item."""


class ResultsDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    more: NotRequired[int]
    """With `--ack`: how many more have ended than this call acknowledges."""

    problems: NotRequired[list["Problem"]]
    """Jobs that could not be read. They may have an answer."""

    read: NotRequired[list["JobId"]]
    """The jobs in the arguments whose answer was already read."""

    results: list["JobView"]
    """The jobs that have ended and whose answer is unread; the one that ended first comes first."""

    running: list["JobView"]
    """The jobs that have not ended."""


class RpcError(TypedDict):
    """The error of a request."""

    code: int
    """-32000, or what JSON-RPC says about the request itself."""

    data: "RpcErrorData"
    """What kind of error it is, and what to try."""

    message: str
    """What failed, and why, for people."""


class RpcErrorData(TypedDict):
    """The error of a request, for programs."""

    kind: "ErrorKind"
    """The kind, as the errors of `--json` have it."""

    subject: NotRequired[str | None]
    """Which job it is about, as the caller named it."""

    tip: NotRequired[str | None]
    """What to try."""


class SendParams(TypedDict):
    """What `send` takes."""

    destination: NotRequired[str | None]
    """Where the host shows what the agent says."""

    session: "Session"
    """The session that gets it."""

    sink: NotRequired[str | None]
    """The sink that it goes to; by default where the last turn went, else the host that attends the session."""

    text: str
    """Its text."""


class SentDocument(TypedDict):
    """What `send --json` prints."""

    format: int
    """The version of this document."""

    in_turn: bool
    """Whether the session was in a turn."""

    interrupted: bool
    """Whether the message interrupted a turn of the session."""

    message: int
    """The number of the message."""

    session: "Session"
    """The session that gets the message."""


class SentDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    in_turn: bool
    """Whether the session was in a turn."""

    interrupted: bool
    """Whether the message interrupted a turn of the session."""

    message: int
    """The number of the message."""

    session: "Session"
    """The session that gets the message."""


ServeParams = TypedDict(
    "ServeParams",
    {
        "ack": "AckParams",
        "attend": "AttendParams",
        "cancel": "CancelParams",
        "events": "EventsParams",
        "events.stop": "EventsStopParams",
        "kill": "KillParams",
        "launch": "LaunchParams",
        "list": "ListParams",
        "output": "OutputParams",
        "release": "ReleaseParams",
        "send": "SendParams",
        "show": "ShowParams",
        "turn.claim": "TurnClaimParams",
        "turn.close": "TurnCloseParams",
        "turn.open": "TurnOpenParams",
        "unattend": "AttendParams",
        "wait": "WaitParams",
    },
    total=False,
)


class ServeProtocol(TypedDict):
    """Every message of `hearback serve`. Each line is an object of JSON-RPC 2.0."""

    error: "RpcError"
    """The `error` of a request that failed."""

    notification: "Notification"
    """`method` and `params` of what the server tells without being asked."""

    params: "ServeParams"
    """The `params` of each request of a host."""

    results: "ServeResults"
    """The `result` of each request."""


ServeResults = TypedDict(
    "ServeResults",
    {
        "ack": "DoneDocument",
        "attend": "DoneDocument",
        "events": "SubscribedDocument",
        "events.stop": "DoneDocument",
        "kill": "KilledDocument",
        "launch": "LaunchDocument",
        "list": "ListDocument",
        "output": "LogDocument",
        "release": "DoneDocument",
        "send": "SentDocument",
        "show": "ShowDocument",
        "turn.claim": "ClaimedDocument",
        "turn.close": "DoneDocument",
        "turn.open": "TurnOpenedDocument",
        "unattend": "DoneDocument",
        "wait": "WaitedDocument",
    },
    total=False,
)


class SessionDocument(TypedDict):
    """The state of a session."""

    dead_letter_error: NotRequired[str | None]
    """Why the oldest of them is one."""

    dead_letters: int
    """How many messages are dead letters: hearback gave up their delivery, or holds them for a person."""

    destination: NotRequired[str | None]
    """The destination of its last turn."""

    interrupted: NotRequired["InterruptedDocument | None"]
    """The newest turn that was interrupted since the last turn that succeeded."""

    jobs: int
    """How many jobs it owns, among the open ones and the newest 1,000 of history."""

    last_turn_at: NotRequired[str | None]
    """When its last turn began (RFC 3339)."""

    session: "Session"
    """The name of the session."""

    sink: NotRequired[str | None]
    """The sink of its last turn."""

    suspended: NotRequired[str | None]
    """Why hearback no longer continues interrupted turns of this session."""

    turn: NotRequired[int | None]
    """The number of the turn in progress; absent when there is none."""

    waiting: int
    """How many messages wait."""

    waits_for_host: NotRequired[bool]
    """Whether they wait for a host that attends the session."""


class SessionProblem(TypedDict):
    """A session that could not be read."""

    error: str
    """What failed."""

    session: str
    """The session, or the name of its folder if it is not known whose it is."""


class SessionsDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    problems: list["SessionProblem"]
    """Sessions that could not be read."""

    sessions: list["SessionDocument"]
    """The sessions, sorted by name."""


class SettingsDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    file: "OsText"
    """The path of the settings file, whether it exists or not."""

    format: int
    """The version of this document."""

    settings: list["EffectiveSetting"]
    """The settings in force."""

    warnings: NotRequired[list[str]]
    """Invalid values that were ignored, each with its reason."""


class SetupDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    agent: str
    """The agent."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    files: list["SetupFileDocument"]
    """Its files."""

    format: int
    """The version of this document."""


class SetupFileDocument(TypedDict):
    """A file of a set-up."""

    changed: bool
    """Whether this call wrote or removed it."""

    path: str
    """Where it is."""

    state: "SetupState"
    """What was there before."""

    text: str
    """What it should hold."""


class ShowDocument(TypedDict):
    """What `show --json` prints: the job, and with `--output` the end of its output."""

    agent: NotRequired["LaunchingAgent | None"]
    """The agent whose session launched it, if it was found."""

    answer: NotRequired["Answer | None"]
    """The answer of a job that `ask` started, once it has ended."""

    bound: NotRequired[bool]
    """Whether a monitor that restarts or stops kills it first (`--bound`)."""

    bound_to: NotRequired[str | None]
    """The unit of a service manager, or the Job Object, in which it was launched and with which it ends."""

    command: NotRequired["Command | None"]
    """The command that it runs; absent when its record cannot be read."""

    cwd: NotRequired["OsText | None"]
    """Its working directory."""

    ended_at: NotRequired[str | None]
    """When it ended, as the supervisor observed it (RFC 3339)."""

    follow_up: "FollowUpView"
    """The follow-up that notifies its owner."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The id of the job."""

    idle_timeout_ms: NotRequired[int | None]
    """The longest time without output, in milliseconds; absent when there is no limit."""

    key: NotRequired[str | None]
    """Its key, from `--key`."""

    label: NotRequired[str | None]
    """Its label, from `--label`."""

    launched_at: NotRequired[str | None]
    """When it was launched (RFC 3339)."""

    log: NotRequired["LogDocument | None"]
    """The end of its output, as much as `--output` says."""

    mcp: NotRequired[bool]
    """Whether it was launched through the MCP server."""

    notes: NotRequired[list[str]]
    """Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine."""

    out_of_sight: NotRequired[str | None]
    """The pid namespace in which processes of it may still run: they could not be seen when its end was recorded."""

    outcome: NotRequired["Outcome | None"]
    """How it ended."""

    output: "OutputView"
    """Its output."""

    paused: NotRequired[bool]
    """Whether its main process is paused, by a signal or a suspend. Its limits still count."""

    pid: NotRequired[int | None]
    """The pid of its main process, to show to people. Pids are reused, so do not send signals to it."""

    prompt: NotRequired[str | None]
    """The prompt of a job that `ask` started with `--prompt`. It is part of the command, too."""

    ran_ms: NotRequired[int | None]
    """How long it ran, in milliseconds, without the time in which the machine slept."""

    session: NotRequired["Session | None"]
    """The session that owns it."""

    started_at: NotRequired[str | None]
    """When its main process was started (RFC 3339)."""

    state: "StateWord"
    """The state of the job."""

    survives: NotRequired[list[str]]
    """What it survives."""

    survivors: NotRequired[list[int]]
    """Pids of processes that outlived it and still run: they could not be killed, or were kept."""

    takes_input: NotRequired[bool]
    """Whether other processes can write to its input (`--stdin`)."""

    timeout_ms: NotRequired[int | None]
    """The longest time that it may run, in milliseconds; absent when there is no limit."""

    usage: NotRequired["Usage | None"]
    """The CPU time and memory that it used."""


class ShowDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    agent: NotRequired["LaunchingAgent | None"]
    """The agent whose session launched it, if it was found."""

    answer: NotRequired["Answer | None"]
    """The answer of a job that `ask` started, once it has ended."""

    bound: NotRequired[bool]
    """Whether a monitor that restarts or stops kills it first (`--bound`)."""

    bound_to: NotRequired[str | None]
    """The unit of a service manager, or the Job Object, in which it was launched and with which it ends."""

    command: NotRequired["Command | None"]
    """The command that it runs; absent when its record cannot be read."""

    cwd: NotRequired["OsText | None"]
    """Its working directory."""

    ended_at: NotRequired[str | None]
    """When it ended, as the supervisor observed it (RFC 3339)."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    follow_up: "FollowUpView"
    """The follow-up that notifies its owner."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The id of the job."""

    idle_timeout_ms: NotRequired[int | None]
    """The longest time without output, in milliseconds; absent when there is no limit."""

    key: NotRequired[str | None]
    """Its key, from `--key`."""

    label: NotRequired[str | None]
    """Its label, from `--label`."""

    launched_at: NotRequired[str | None]
    """When it was launched (RFC 3339)."""

    log: NotRequired["LogDocument | None"]
    """The end of its output, as much as `--output` says."""

    mcp: NotRequired[bool]
    """Whether it was launched through the MCP server."""

    notes: NotRequired[list[str]]
    """Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine."""

    out_of_sight: NotRequired[str | None]
    """The pid namespace in which processes of it may still run: they could not be seen when its end was recorded."""

    outcome: NotRequired["Outcome | None"]
    """How it ended."""

    output: "OutputView"
    """Its output."""

    paused: NotRequired[bool]
    """Whether its main process is paused, by a signal or a suspend. Its limits still count."""

    pid: NotRequired[int | None]
    """The pid of its main process, to show to people. Pids are reused, so do not send signals to it."""

    prompt: NotRequired[str | None]
    """The prompt of a job that `ask` started with `--prompt`. It is part of the command, too."""

    ran_ms: NotRequired[int | None]
    """How long it ran, in milliseconds, without the time in which the machine slept."""

    session: NotRequired["Session | None"]
    """The session that owns it."""

    started_at: NotRequired[str | None]
    """When its main process was started (RFC 3339)."""

    state: "StateWord"
    """The state of the job."""

    survives: NotRequired[list[str]]
    """What it survives."""

    survivors: NotRequired[list[int]]
    """Pids of processes that outlived it and still run: they could not be killed, or were kept."""

    takes_input: NotRequired[bool]
    """Whether other processes can write to its input (`--stdin`)."""

    timeout_ms: NotRequired[int | None]
    """The longest time that it may run, in milliseconds; absent when there is no limit."""

    usage: NotRequired["Usage | None"]
    """The CPU time and memory that it used."""


class ShowParams(TypedDict):
    """What `show` takes: a job as people name one, or a key."""

    job: NotRequired[str | None]
    """The job: its id, four characters of either end of it, its label or `@last`. Either this or `key`."""

    key: NotRequired[str | None]
    """The key that the job was launched with."""

    output_bytes: NotRequired[int | None]
    """Adds the end of its output as `log`, at most so many bytes."""

    session: NotRequired["Session | None"]
    """Only a job of this session."""


class SinkDocument(TypedDict):
    """One sink."""

    name: str
    """Its name."""

    needs_session: bool
    """Whether it can only take the follow-up of a job that has a session."""

    problem: NotRequired[str | None]
    """Why it cannot be used: its program is missing, say, or its settings are invalid."""

    usable: bool
    """Whether it can be used here, as far as that is known without running it."""


class SinkTestDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    delivered: bool
    """Whether the sink accepted the sample."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    reply: str
    """The reply of the sink."""

    sink: str
    """The sink."""


class SinksDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    details: list["SinkDocument"]
    """The same sinks, and those that the settings define wrongly, each with whether it can be used here."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    sinks: list[str]
    """The names of all sinks: configured and built in."""


class StartError(TypedDict):
    """Why a command could not be started."""

    kind: "StartErrorKind"
    """The kind of failure."""

    message: str
    """The message of the operating system, with the name of the program or directory."""


class StepDocument(TypedDict):
    """One step of a reconcile."""

    id: "JobId"
    """The job."""

    step: str
    """`abandon`, `lose`, `answer`, `settle` or `archive`."""


class SubscribedDocument(TypedDict):
    """What `events` answers."""

    cursor: str
    """What to pass to `since` to read on from here."""

    format: int
    """The version of this document."""

    subscription: int
    """Names the subscription."""


class TimelineDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    jobs: list["TimelineJob"]
    """The jobs, newest first."""

    problems: NotRequired[list["Problem"]]
    """Jobs that could not be read."""

    truncated: bool
    """Whether more jobs may match: only the open ones and the newest of history are in it."""


class TimelineJob(TypedDict):
    """A job, and the attempts to notify its owner."""

    agent: NotRequired["LaunchingAgent | None"]
    """The agent whose session launched it, if it was found."""

    answer: NotRequired["Answer | None"]
    """The answer of a job that `ask` started, once it has ended."""

    attempts: list["AttemptDocument"]
    """The attempts, in order."""

    bound: NotRequired[bool]
    """Whether a monitor that restarts or stops kills it first (`--bound`)."""

    bound_to: NotRequired[str | None]
    """The unit of a service manager, or the Job Object, in which it was launched and with which it ends."""

    command: NotRequired["Command | None"]
    """The command that it runs; absent when its record cannot be read."""

    cwd: NotRequired["OsText | None"]
    """Its working directory."""

    ended_at: NotRequired[str | None]
    """When it ended, as the supervisor observed it (RFC 3339)."""

    follow_up: "FollowUpView"
    """The follow-up that notifies its owner."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The id of the job."""

    idle_timeout_ms: NotRequired[int | None]
    """The longest time without output, in milliseconds; absent when there is no limit."""

    key: NotRequired[str | None]
    """Its key, from `--key`."""

    label: NotRequired[str | None]
    """Its label, from `--label`."""

    launched_at: NotRequired[str | None]
    """When it was launched (RFC 3339)."""

    mcp: NotRequired[bool]
    """Whether it was launched through the MCP server."""

    notes: NotRequired[list[str]]
    """Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine."""

    out_of_sight: NotRequired[str | None]
    """The pid namespace in which processes of it may still run: they could not be seen when its end was recorded."""

    outcome: NotRequired["Outcome | None"]
    """How it ended."""

    output: "OutputView"
    """Its output."""

    paused: NotRequired[bool]
    """Whether its main process is paused, by a signal or a suspend. Its limits still count."""

    pid: NotRequired[int | None]
    """The pid of its main process, to show to people. Pids are reused, so do not send signals to it."""

    prompt: NotRequired[str | None]
    """The prompt of a job that `ask` started with `--prompt`. It is part of the command, too."""

    ran_ms: NotRequired[int | None]
    """How long it ran, in milliseconds, without the time in which the machine slept."""

    session: NotRequired["Session | None"]
    """The session that owns it."""

    started_at: NotRequired[str | None]
    """When its main process was started (RFC 3339)."""

    state: "StateWord"
    """The state of the job."""

    survives: NotRequired[list[str]]
    """What it survives."""

    survivors: NotRequired[list[int]]
    """Pids of processes that outlived it and still run: they could not be killed, or were kept."""

    takes_input: NotRequired[bool]
    """Whether other processes can write to its input (`--stdin`)."""

    timeout_ms: NotRequired[int | None]
    """The longest time that it may run, in milliseconds; absent when there is no limit."""

    usage: NotRequired["Usage | None"]
    """The CPU time and memory that it used."""


class CommandTurnCause(TypedDict):
    """`hearback turn` runs an agent."""

    kind: Literal["command"]


class FollowUpTurnCause(TypedDict):
    """A job has ended, or several at about the same time."""

    delivery: str
    """The delivery."""

    kind: Literal["follow_up"]

    others: NotRequired[list[str]]
    """The deliveries that are told in the same turn."""


class MessageTurnCause(TypedDict):
    """A message arrived."""

    attempt: int
    """The number of the attempt, from 1."""

    kind: Literal["message"]

    n: int
    """Its number."""


class ResumeTurnCause(TypedDict):
    """An earlier turn was interrupted."""

    kind: Literal["resume"]

    turn: int
    """Its number."""


class UnknownTurnCause(TypedDict):
    """A cause that only a newer build knows."""

    kind: Literal["unknown"]


TurnCause: TypeAlias = CommandTurnCause | FollowUpTurnCause | MessageTurnCause | ResumeTurnCause | UnknownTurnCause
"""What a turn is for."""


class TurnClaimParams(TypedDict):
    """What `turn.claim` takes."""

    turn: str
    """The token of the turn."""


class TurnCloseParams(TypedDict):
    """What `turn.close` takes."""

    error: NotRequired[str | None]
    """Why it failed."""

    how: "TurnCloseHow"
    """How it ended."""

    turn: str
    """The token of the turn."""


class TurnDocument(TypedDict):
    """A turn that the server has begun, because something is due: the notification `turn`."""

    destination: NotRequired[str | None]
    """Where the host shows what the agent says."""

    env: dict[str, str]
    """Variables for the processes of the agent. By these they are found, and ended, if this host dies."""

    format: int
    """The version of this document."""

    items: list["ItemDocument"]
    """What the turn holds. Empty in the answer of `turn.open`."""

    note: NotRequired["Note | None"]
    """What the agent should hear first: the turn before was cut short."""

    number: int
    """The number of the turn."""

    session: "Session"
    """The session."""

    text: str
    """The note and the items as text for the agent."""

    turn: str
    """The token of the turn."""


class TurnDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    outcome: "Outcome"
    """How the agent ended."""

    session: "Session"
    """The session."""


class DoneTurnHow(TypedDict):
    """The agent did what it was asked."""

    kind: Literal["done"]


class FailedTurnHow(TypedDict):
    """It did not."""

    error: str
    """Why."""

    kind: Literal["failed"]


class InterruptedTurnHow(TypedDict):
    """It was cut short."""

    kind: Literal["interrupted"]

    reason: "Interruption"
    """Why."""


class UnknownTurnHow(TypedDict):
    """A way that only a newer build knows. The turn has ended all the same."""

    kind: Literal["unknown"]


TurnHow: TypeAlias = DoneTurnHow | FailedTurnHow | InterruptedTurnHow | UnknownTurnHow
"""The ways in which a turn ends."""


class TurnOpenParams(TypedDict):
    """What `turn.open` takes."""

    destination: NotRequired[str | None]
    """Where the host shows what the agent says."""

    history: NotRequired["HistoryWord | None"]
    """What the history of the conversation ends with, if the host knows: it decides whether the agent gets a note."""

    session: "Session"
    """The session."""

    wait_ms: NotRequired[int]
    """How long to wait while the session is in another turn."""


class TurnOpenedDocument(TypedDict):
    """A turn that this host runs: what `turn.open` answers."""

    destination: NotRequired[str | None]
    """Where the host shows what the agent says."""

    env: dict[str, str]
    """Variables for the processes of the agent. By these they are found, and ended, if this host dies."""

    format: int
    """The version of this document."""

    items: list["ItemDocument"]
    """What the turn holds. Empty in the answer of `turn.open`."""

    note: NotRequired["Note | None"]
    """What the agent should hear first: the turn before was cut short."""

    number: int
    """The number of the turn."""

    session: "Session"
    """The session."""

    turn: str
    """The token of the turn."""


class Usage(TypedDict):
    """The CPU time and memory of a job, with the children that it waited for."""

    peak_memory_bytes: int
    """The largest memory of one of its processes."""

    system_ms: int
    """CPU time in the kernel."""

    user_ms: int
    """CPU time in the program."""


class VersionDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    version: str
    """The version of hearback."""


class WaitParams(TypedDict):
    """What `wait` takes."""

    any: NotRequired[bool]
    """Return when one of them has ended."""

    jobs: list[str]
    """The jobs."""

    peek: NotRequired[bool]
    """The session has not read how they ended."""

    session: NotRequired["Session | None"]
    """Only jobs of this session, which has read how they ended when it is answered."""

    timeout_ms: NotRequired[int | None]
    """How long to wait; left out or `null`, until they have ended."""


class WaitedDocument(TypedDict):
    """What `wait` answers."""

    format: int
    """The version of this document."""

    jobs: list["JobView"]
    """The jobs as they are now, in the order of the request."""

    problems: NotRequired[list["Problem"]]
    """Jobs that cannot be waited for."""

    timed_out: bool
    """Whether the time of the wait passed before it was complete. The jobs continue."""


class WrittenDocumentReply(TypedDict):
    """A document, and why the command failed, if it did. Every command prints its document in this form."""

    bytes: int
    """How many bytes the job can read now, or has read."""

    ended: bool
    """Whether its input was ended behind them."""

    error: NotRequired["ErrorDetail | None"]
    """Why the command failed, wholly or in part; absent when it succeeded."""

    format: int
    """The version of this document."""

    id: "JobId"
    """The job."""


__all__ = [
    "AckParams",
    "AgentDocument",
    "AgentsDocumentReply",
    "Answer",
    "AnswerSource",
    "AnswerText",
    "AttemptDocument",
    "AttendParams",
    "BootId",
    "CancelParams",
    "ChangedMessageDocumentReply",
    "CheckDocument",
    "ClaimDocumentReply",
    "ClaimKind",
    "ClaimedDocument",
    "ClosedDocumentReply",
    "CloudEvent",
    "Command",
    "CompletionsDocumentReply",
    "ConformanceDocument",
    "Delivery",
    "DoctorDocumentReply",
    "DoneDocument",
    "DrainingDocument",
    "DueDocument",
    "Durability",
    "EffectiveSetting",
    "ErrorDetail",
    "ErrorDocument",
    "ErrorKind",
    "EventDocument",
    "EventsEndedDocument",
    "EventsParams",
    "EventsStopParams",
    "Exit",
    "ExitCodeDocument",
    "ExitCodesDocumentReply",
    "ExpectationDocument",
    "FollowUpState",
    "FollowUpView",
    "FollowUps",
    "FollowUpsDocumentReply",
    "Gap",
    "GapReason",
    "HappenedDocument",
    "HelloDocument",
    "HistoryWord",
    "InboxDocumentReply",
    "InstallDocumentReply",
    "InterruptDocument",
    "InterruptedDocument",
    "Interruption",
    "ItemDocument",
    "ItemKind",
    "JobId",
    "JobView",
    "JobViewReply",
    "KillDocumentReply",
    "KillParams",
    "KilledBy",
    "KilledDocument",
    "LaunchDocument",
    "LaunchDocumentReply",
    "LaunchParams",
    "LaunchingAgent",
    "ListDocument",
    "ListDocumentReply",
    "ListParams",
    "LogDocument",
    "LogDocumentReply",
    "LogPart",
    "LostReason",
    "MessageDocument",
    "MessageHow",
    "MessagePayload",
    "Missing",
    "MonitorDocumentReply",
    "MonitorRequestDocumentReply",
    "MonitorRunDocumentReply",
    "Note",
    "Notice",
    "Notification",
    "NotifyPolicy",
    "OrderDocument",
    "OsText",
    "Outcome",
    "OutputExcerpt",
    "OutputParams",
    "OutputView",
    "PluginCheckDocumentReply",
    "Problem",
    "ProcessIdentity",
    "PruneDocumentReply",
    "ReadyDocument",
    "ReadyType",
    "ReconcileDocumentReply",
    "ReleaseHow",
    "ReleaseParams",
    "RequestId",
    "ResultsDocumentReply",
    "RpcError",
    "RpcErrorData",
    "SendParams",
    "SentDocument",
    "SentDocumentReply",
    "ServeParams",
    "ServeProtocol",
    "ServeResults",
    "ServiceManager",
    "Session",
    "SessionDocument",
    "SessionProblem",
    "SessionsDocumentReply",
    "SettingSource",
    "SettingsDocumentReply",
    "SetupDocumentReply",
    "SetupFileDocument",
    "SetupState",
    "ShowDocument",
    "ShowDocumentReply",
    "ShowParams",
    "SinkDocument",
    "SinkTestDocumentReply",
    "SinksDocumentReply",
    "StartError",
    "StartErrorKind",
    "StateWord",
    "StepDocument",
    "StopKind",
    "SubscribedDocument",
    "TimelineDocumentReply",
    "TimelineJob",
    "ToldHow",
    "TurnCause",
    "TurnClaimParams",
    "TurnCloseHow",
    "TurnCloseParams",
    "TurnDocument",
    "TurnDocumentReply",
    "TurnHow",
    "TurnOpenParams",
    "TurnOpenedDocument",
    "Usage",
    "VersionDocumentReply",
    "WaitParams",
    "WaitedDocument",
    "WrittenDocumentReply",
]
