// Made by scripts/types.mjs from `hearback schema`. Do not edit it.

/** Everything that hearback prints as JSON, by the command that prints it. */
export interface Documents {
  /** `agent list`. */
  agent_list: AgentsDocumentReply;
  /** `agent setup`. */
  agent_setup: SetupDocumentReply;
  /** `completions`. */
  completions: CompletionsDocumentReply;
  /** `doctor`. */
  doctor: DoctorDocumentReply;
  /** A call that failed without anything else to say, and each job of several that failed. */
  error: ErrorDocument;
  /** What a sink gets, and `followups next` prints. */
  event: CloudEvent;
  /** The first line of `events`. */
  events_ready: ReadyDocument;
  /** `exit-codes`. */
  exit_codes: ExitCodesDocumentReply;
  /** What a sink that starts turns gets for several follow-ups; the envelope is that of `event`. */
  follow_ups: FollowUps;
  /** `followups`. */
  followups: FollowUpsDocumentReply;
  /** `followups claim`. */
  followups_claim: ClaimDocumentReply;
  /** Each line of `followups ack`, `release`, `retry` and `discard`. */
  followups_closed: ClosedDocumentReply;
  /** Each other line of `events`. */
  happening: EventDocument;
  /** `inbox`. */
  inbox: InboxDocumentReply;
  /** `inbox retry` and `inbox discard`. */
  inbox_change: ChangedMessageDocumentReply;
  /** A job: each line of `wait`, and what other documents have of jobs. */
  job: JobViewReply;
  /** Each line of `kill`. */
  kill: KillDocumentReply;
  /** `launch` and `ask`. */
  launch: LaunchDocumentReply;
  /** `list`. */
  list: ListDocumentReply;
  /** `logs`. */
  logs: LogDocumentReply;
  /** What a sink gets for a message; the envelope is that of `event`. */
  message: MessagePayload;
  /** `monitor status`. */
  monitor: MonitorDocumentReply;
  /** `monitor install`. */
  monitor_install: InstallDocumentReply;
  /** `monitor restart`, `monitor stop` and `monitor drain`. */
  monitor_request: MonitorRequestDocumentReply;
  /** `monitor run`. */
  monitor_run: MonitorRunDocumentReply;
  /** What a sink gets for a notice; the envelope is that of `event`. */
  notice: Notice;
  /** `plugin check`. */
  plugin_check: PluginCheckDocumentReply;
  /** `prune`. */
  prune: PruneDocumentReply;
  /** `reconcile`. */
  reconcile: ReconcileDocumentReply;
  /** `results`. */
  results: ResultsDocumentReply;
  /** `send`. */
  send: SentDocumentReply;
  /** `serve`. */
  serve: ServeProtocol;
  /** `sessions`. */
  sessions: SessionsDocumentReply;
  /** `settings`. */
  settings: SettingsDocumentReply;
  /** `show`. */
  show: ShowDocumentReply;
  /** `sink list`. */
  sink_list: SinksDocumentReply;
  /** `sink test`. */
  sink_test: SinkTestDocumentReply;
  /** `timeline`. */
  timeline: TimelineDocumentReply;
  /** `turn`. */
  turn: TurnDocumentReply;
  /** `--version`. */
  version: VersionDocumentReply;
  /** `write`. */
  write: WrittenDocumentReply;
}

/** What `ack` takes. */
export interface AckParams {
  /** The token of the item. */
  token: string;
}

/** An agent that hearback knows. */
export interface AgentDocument {
  /** The ways into one of its sessions, in the order in which they are tried. */
  doors: string[];
  /** Whether it runs this command. */
  here: boolean;
  /** Its name, which is also the name of its sink. */
  name: string;
  /** Its program; absent if it is not installed. */
  program?: string | null;
  /** Its name for people. */
  title: string;
  /** What it says its version is. */
  version?: string | null;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface AgentsDocumentReply {
  /** The agents that hearback knows. */
  agents: AgentDocument[];
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
}

/** The answer of a prompt job. Every job that `ask` started has one when it has ended. */
export type Answer =
  /** The job succeeded, and this is its answer. */
  | AnswerText & {
    kind: "text";
  }
  /** The job succeeded without an answer. */
  | {
    kind: "no_answer";
    /** Why there is no answer. */
    reason: string;
  }
  /** The job failed. Its text until then is not an answer, but may be useful. */
  | {
    kind: "failed";
    /** How the job ended, and the error message of the agent. */
    reason: string;
    /** Where the text was found. */
    source?: AnswerSource;
    /** The text. */
    text?: string;
    /** Whether the text was cut. */
    truncated?: boolean;
  }
  /** An answer that only a newer hearback knows. */
  | {
    kind: "unknown";
  };

/** Where an answer was found. */
export type AnswerSource =
  /** The job wrote it to the file that `HEARBACK_ANSWER` names. */
  | "file"
  /** It is the last message of the assistant in JSON output of the job. */
  | "message"
  /** It is the output of the job. */
  | "output"
  /** A source that only a newer hearback knows. */
  | "unknown";

/** Text of an agent, without control characters. */
export interface AnswerText {
  /** Where the text was found. */
  source: AnswerSource;
  /** The text. */
  text: string;
  /** Whether the text was cut. */
  truncated?: boolean;
}

/** One attempt to notify the owner of a job. */
export interface AttemptDocument {
  /** When it was begun (RFC 3339). */
  at: string;
  /** When it failed (RFC 3339); absent if it succeeded, or its process died. */
  ended_at?: string | null;
  /** Why it failed. */
  error?: string | null;
  /** The sink. */
  sink?: string | null;
}

/** What `attend` and `unattend` take: one of the two. */
export interface AttendParams {
  /** Every session. */
  all?: boolean;
  /** This session. */
  session?: Session | null;
}

/** Names one run of an operating system. Opaque; compared for equality only. */
export type BootId = string;

/** What the notification `cancel` of a host takes. */
export interface CancelParams {
  /** The `id` of a request that is not answered yet. */
  id: RequestId;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface ChangedMessageDocumentReply {
  /** Whether the command changed anything. */
  changed: boolean;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The number of the message. */
  message: number;
  /** The session of the message. */
  session: Session;
}

/** One check of `doctor`. */
export interface CheckDocument {
  /** `ok`, `warn`, `fail`, or `skip` if the check was not made. */
  level: string;
  /** The finding. */
  message: string;
  /** Its name, which never changes. */
  name: string;
  /** What to do about it. */
  tip?: string | null;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface ClaimDocumentReply {
  /** The number of this attempt, from 1. */
  attempt: number;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The id of the delivery, which never changes. */
  id: string;
  /** `follow_up`. */
  kind: ClaimKind;
  /** What a sink would get. */
  payload: CloudEvent;
  /** What acknowledges or releases it. */
  token: string;
  /** Until when no other caller gets it (RFC 3339). */
  until: string;
}

/** What was claimed. */
export type ClaimKind =
  /** The follow-up of a job. */
  | "follow_up";

/** What `turn.claim` answers. */
export interface ClaimedDocument {
  /** The version of this document. */
  format: number;
  /** What the turn holds besides, from now on. */
  items: ItemDocument[];
  /** The items as text for the agent; absent without an item. */
  text?: string | null;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface ClosedDocumentReply {
  /** Whether the command changed anything. */
  changed: boolean;
  /** The id of the delivery. */
  delivery: string;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** Why it changed nothing. */
  reason?: string | null;
}

/** A document in its envelope: CloudEvents 1.0, in JSON. */
export interface CloudEvent {
  /** The document. */
  data: Delivery;
  /** The media type of `data`. */
  datacontenttype: string;
  /** The id of the document in `data`. */
  id: string;
  /** The sender. */
  source: string;
  /** The version of the envelope. */
  specversion: string;
  /** What the event is about: for a follow-up, the job. */
  subject: string;
  /** When it happened: for a follow-up, when the job ended (RFC 3339). */
  time?: string | null;
  /** The type of the event, such as `dev.hearback.job.ended.v1`. */
  type: string;
}

/** A program with its arguments, or text for a shell. */
export type Command =
  /** Run as given, without a shell. */
  | {
    /** The program, and its arguments. */
    argv: OsText[];
  }
  /** Run by a shell. */
  | {
    /** The shell that runs it, if one was chosen. */
    program?: string | null;
    /** The text. */
    shell: string;
  }
  /** Of a kind that only a newer hearback knows. */
  | Record<string, unknown>;

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface CompletionsDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The script for it. */
  script: string;
  /** The shell. */
  shell: string;
}

/** One check of a plugin. */
export interface ConformanceDocument {
  /** What the plugin did. */
  message: string;
  /** Its name, which never changes. */
  name: string;
  /** Whether the check passed. */
  passed: boolean;
}

/** A follow-up, as a sink gets it. */
export interface Delivery {
  /** The number of this attempt, from 1. */
  attempt: number;
  /** The length of the chain of follow-ups that led here, this one included. */
  depth: number;
  /** The version of this document. */
  format: number;
  /** The id of the delivery, `<job>.end`: the same in every attempt, so that a repeat is recognisable. */
  id: string;
  /** The job that has ended. */
  job: JobView;
  /** Whether the job ended longer ago than the setting `late_after`. */
  late: boolean;
  /** A note about an interrupted turn of the session. */
  note?: Note | null;
  /** The output of the job, cut to the setting `notice_bytes`. */
  output: OutputExcerpt;
  /** The session that gets it. */
  session?: Session | null;
  /** All of this as text for a model, with the output marked as data. */
  text: string;
  /**
   * Why the session could not be reached, if this sink gets the follow-up in its place. The session is notified
   * later, as soon as that is possible.
   */
  unreached?: string | null;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface DoctorDocumentReply {
  /** The checks. */
  checks: CheckDocument[];
  /** Whether records are written to survive a power cut. */
  durability: Durability;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The path of the store, whether it exists or not. */
  store?: OsText | null;
  /** The version of hearback. */
  version: string;
}

/** An answer that says no more than that it is done. */
export interface DoneDocument {
  /** The version of this document. */
  format: number;
}

/** A monitor restarts or stops, and no turn begins until that is over: the notification `draining`. */
export interface DrainingDocument {
  /** The version of this document. */
  format: number;
  /** What the monitor does. */
  kind: StopKind;
  /** Whether it is over. */
  over: boolean;
}

/** Something became due for a session while a turn of this host runs there: the notification `due`. */
export interface DueDocument {
  /** How much is due now. `turn.claim` takes it; otherwise it comes after the turn. */
  count: number;
  /** The version of this document. */
  format: number;
  /** The session. */
  session: Session;
  /** The token of the turn. */
  turn: string;
}

/** Whether records survive a power cut. */
export type Durability =
  /** Requests and outcomes are flushed to the disk before any process relies on them. */
  | "power"
  /** Nothing is flushed: facts survive every crash of a process, not of the machine. */
  | "process"
  /** A choice that only a newer build knows; taken for [`Durability::Power`], the strongest that this one knows. */
  | "unknown";

/** One setting as it is in force. */
export interface EffectiveSetting {
  /** Its name in the settings file. */
  name: string;
  /** Where that comes from. */
  source: SettingSource;
  /** Its value, as it could be written there; absent where there is none. */
  value?: string | null;
  /** The variable that sets it, if one does. */
  variable?: string | null;
}

/** Why a command failed. */
export interface ErrorDetail {
  /** What kind of error it is. It decides the exit code. */
  kind: ErrorKind;
  /** What failed, and why, for people. */
  message: string;
  /** Which job or delivery it is about, as the caller named it; its id if the caller did not. */
  subject?: string | null;
  /** What to try. */
  tip?: string | null;
}

/** What a command prints with `--json` when it failed and there is nothing else to say. */
export interface ErrorDocument {
  /** Why the command failed. */
  error: ErrorDetail;
  /** The version of this document. */
  format: number;
}

/** The kinds of errors. `docs/exit-codes.md` describes each. */
export type ErrorKind =
  /** The call is wrong: an unknown option, a missing session, an empty message. */
  | "usage"
  /** `HEARBACK_DENY` denies it. */
  | "denied"
  /** There is no such sink, or no sink for this session. */
  | "no_sink"
  /** The session that should get the answer is unknown. */
  | "unknown_session"
  /** The key names another job. */
  | "key_taken"
  /** Too long a chain of follow-ups, or too many in an hour. */
  | "chain_limit"
  /** There is no such job. */
  | "unknown_job"
  /** Several jobs could be meant. */
  | "ambiguous_job"
  /** The job has not ended, and has to. */
  | "not_ended"
  /** The job has no answer. */
  | "no_answer"
  /** There is nothing to print or to change. */
  | "nothing"
  /** The token of a claim is over, and another process has the follow-up; or it is no token. */
  | "claim_lost"
  /** A kill left processes, failed or got no response. */
  | "not_killed"
  /** The job takes no input, or no more of it. */
  | "no_input"
  /** The sink did not accept the sample. */
  | "not_delivered"
  /** A check failed. */
  | "check_failed"
  /** The person at the terminal said no. */
  | "declined"
  /** No monitor is running. */
  | "no_monitor"
  /** Not now: the session is in a turn, or the monitor is about to end. */
  | "busy"
  /** The wait reached its deadline. The job continues. */
  | "deadline"
  /** The program is not executable. */
  | "not_executable"
  /** The program was not found. */
  | "not_found"
  /** The job or the agent could not be started, or its start was not confirmed. */
  | "not_started"
  /** Some jobs or sessions could not be read or changed. The rest was. */
  | "partly"
  /** The store cannot be opened, read or written. */
  | "store"
  /** The monitor does not answer. */
  | "monitor_silent"
  /** Anything else failed. */
  | "failed"
  /** The command was interrupted. */
  | "interrupted"
  /** The host cancelled the request. */
  | "cancelled"
  /** The turn, the claim or the subscription is over, or never was. */
  | "unknown_token";

/** One line of `events`: something that happened. */
export type EventDocument = {
  /** When it happened, by the clock of that moment. */
  at: string;
  /** What to pass to `--since` to read on behind it. */
  cursor: string;
  /** The version of this document. */
  format: number;
  /** Its identity. An event that is read again has the same one. */
  id: string;
  /** The job, as it is now. */
  job?: JobView | null;
  /** Whose job or session it is. */
  session?: Session | null;
} & (
  /** A job is on disk: its owner will hear of it. */
  | {
    type: "launched";
  }
  /** Its command runs. */
  | {
    type: "started";
  }
  /** A kill was requested. */
  | {
    /** By whom. */
    by: KilledBy;
    /** Why. */
    reason?: string | null;
    type: "kill_requested";
  }
  /**
   * It has printed more. There is no fact behind it, so it is told once, and only to a reader that is there and
   * asks for it.
   */
  | {
    /** The last line that is not blank, cut to 200 characters. */
    last_line?: string | null;
    type: "output";
  }
  /** It has ended. */
  | {
    type: "ended";
  }
  /** Its owner was not reached, and another attempt will be made. */
  | {
    /** The number of the attempt. */
    attempt: number;
    /** Why not. */
    reason?: string | null;
    /** The sink. */
    sink?: string | null;
    type: "not_told";
  }
  /** Its owner was not reached, and no further attempt will be made until a person acts. */
  | {
    /** The number of the attempt. */
    attempt: number;
    /** Why not. */
    reason?: string | null;
    /** The sink. */
    sink?: string | null;
    type: "dead_letter";
  }
  /** A person had a dead letter tried again. */
  | {
    type: "retried";
  }
  /** Its owner has it, or will not get it. */
  | {
    /** How. */
    how: ToldHow;
    type: "told";
  }
  /** Nothing more will happen to the job. */
  | {
    type: "settled";
  }
  /** A turn of a session has begun. */
  | {
    /** What it is for. */
    cause: TurnCause;
    /** Its number. */
    turn: number;
    type: "turn_begun";
  }
  /** A turn of a session has ended. */
  | {
    /** How. */
    how: TurnHow;
    /** Its number. */
    turn: number;
    type: "turn_ended";
  }
  /** A message waits for a session. */
  | {
    /** Its number. */
    message: number;
    type: "message_queued";
  }
  /** A message was not delivered. */
  | {
    /** Whether a person has to act before another attempt is made. */
    dead_letter: boolean;
    /** Its number. */
    message: number;
    /** Why not. */
    reason: string;
    type: "message_not_delivered";
  }
  /** Nothing more is to be done about a message. */
  | {
    /** What became of it. */
    how: MessageHow;
    /** Its number. */
    message: number;
    type: "message_closed";
  }
);

/** Why a subscription ended that the host did not stop: the notification `events.ended`. */
export interface EventsEndedDocument {
  /** Why. */
  error: ErrorDetail;
  /** The version of this document. */
  format: number;
  /** The subscription. */
  subscription: number;
}

/** What `events` takes. */
export interface EventsParams {
  /** Only what happens to this session and its jobs. */
  session?: Session | null;
  /** The `cursor` of an event, `beginning` or `now`; by default `now`. */
  since?: string | null;
}

/** What `events.stop` takes. */
export interface EventsStopParams {
  /** The subscription. */
  subscription: number;
}

/** How a process that hearback terminated or killed then ended. */
export type Exit =
  /** It exited with this code. */
  | {
    /** The code. */
    code: number;
    kind: "exited";
  }
  /** A signal killed it. */
  | {
    /** Whether it left a core dump. */
    core: boolean;
    kind: "signaled";
    /** The signal's number. */
    signal: number;
  }
  /** An exit that only a newer build knows. */
  | {
    kind: "unknown";
  };

/** One exit code of some commands. */
export interface ExitCodeDocument {
  /** The code, or several in words, such as `128+n`. */
  code: string;
  /** What it means. */
  meaning: string;
  /** The commands, in words. */
  of: string;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface ExitCodesDocumentReply {
  /** The codes, those of one group of commands after those of another. */
  codes: ExitCodeDocument[];
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
}

/** What an owner can expect when its job ends. */
export interface ExpectationDocument {
  /**
   * `woken`: its session is woken. `woken_when_closed`: its session is woken once it is closed. `sent`: a sink that
   * starts no turn is notified. `fetch`: the follow-up waits until the session fetches it. `unreachable`: the sink
   * cannot be used here. `nothing`: no follow-up is wanted.
   */
  kind: string;
  /** Why its session is not woken, if there is a reason to give. */
  reason?: string | null;
  /** The sink, if there is one. */
  sink?: string | null;
  /** All of this in words. */
  text: string;
}

/** The state of a follow-up. */
export type FollowUpState =
  /** No notification is wanted. */
  | "not_wanted"
  /** The job has not ended. */
  | "waiting"
  /** The job has ended, and its owner is not notified yet. */
  | "pending"
  /** A process is delivering it. */
  | "leased"
  /** A sink accepted it. */
  | "delivered"
  /** The agent keeps it in a queue of its own, from which its session takes it. */
  | "queued"
  /** The owner has read the result itself. */
  | "read"
  /** Delivery was given up; a person has to act. */
  | "dead_letter"
  /** A caller discarded it. */
  | "discarded"
  /** It was not delivered within `expire_after`. */
  | "expired"
  /** A newer build closed it, in a way that this one does not know. */
  | "closed";

/** The follow-up that notifies the owner of a job. */
export interface FollowUpView {
  /** How many attempts were made to deliver it. */
  attempts?: number;
  /** The id of its delivery, which never changes; absent when no follow-up is wanted. */
  delivery?: string | null;
  /** Why the last attempt failed. */
  error?: string | null;
  /** When the next attempt is due (RFC 3339); absent if none was made yet, and where none will be made by itself. */
  next_attempt_at?: string | null;
  /** When the owner wants to be notified. */
  policy?: NotifyPolicy | null;
  /** The sink of the last attempt. */
  sink?: string | null;
  /** The sinks that it goes to, in the order in which they are tried. */
  sinks?: string[];
  /** The state of the follow-up. */
  state: FollowUpState;
}

/**
 * Several follow-ups of one session, as a sink gets them that starts a turn: one turn tells of all.
 *
 * Each has an identity and attempts of its own. One that is repeated may come alone, or with others, so a receiver
 * that remembers identities remembers those in `deliveries`.
 */
export interface FollowUps {
  /** The follow-ups, in the order in which their jobs ended. */
  deliveries: Delivery[];
  /** The length of the longest chain of follow-ups that led here. */
  depth: number;
  /** The version of this document. */
  format: number;
  /** The id of this event, `<session>.turn.<number>`. It is used once: a repeat has another. */
  id: string;
  /** A note about an interrupted turn of the session. */
  note?: Note | null;
  /** The session that gets them. */
  session: Session;
  /** Note and follow-ups as text for a model. */
  text: string;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface FollowUpsDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The jobs whose follow-up is pending, leased or a dead letter; the one that ended first comes first. */
  jobs: JobView[];
  /** Jobs that could not be read. Their follow-ups may be pending. */
  problems?: Problem[];
}

/** A missing part of the output. Offsets count all output, also what was dropped. */
export interface Gap {
  /** The first byte after the gap. */
  end: number;
  /** Why it is missing. */
  reason: GapReason;
  /** The first byte that is missing. */
  start: number;
}

/** Why a part of the output is missing. */
export type GapReason =
  /** The output exceeded the log cap, and its middle was dropped. */
  | "cap"
  /** The output could not be written: the disk was full, or failed. */
  | "lost"
  /** A reason that only a newer build knows. */
  | "unknown";

/** Something happened: the notification `event`. */
export type HappenedDocument = {
  /** When it happened, by the clock of that moment. */
  at: string;
  /** What to pass to `--since` to read on behind it. */
  cursor: string;
  /** The version of this document. */
  format: number;
  /** Its identity. An event that is read again has the same one. */
  id: string;
  /** The job, as it is now. */
  job?: JobView | null;
  /** Whose job or session it is. */
  session?: Session | null;
  /** The subscription. */
  subscription: number;
} & (
  /** A job is on disk: its owner will hear of it. */
  | {
    type: "launched";
  }
  /** Its command runs. */
  | {
    type: "started";
  }
  /** A kill was requested. */
  | {
    /** By whom. */
    by: KilledBy;
    /** Why. */
    reason?: string | null;
    type: "kill_requested";
  }
  /**
   * It has printed more. There is no fact behind it, so it is told once, and only to a reader that is there and
   * asks for it.
   */
  | {
    /** The last line that is not blank, cut to 200 characters. */
    last_line?: string | null;
    type: "output";
  }
  /** It has ended. */
  | {
    type: "ended";
  }
  /** Its owner was not reached, and another attempt will be made. */
  | {
    /** The number of the attempt. */
    attempt: number;
    /** Why not. */
    reason?: string | null;
    /** The sink. */
    sink?: string | null;
    type: "not_told";
  }
  /** Its owner was not reached, and no further attempt will be made until a person acts. */
  | {
    /** The number of the attempt. */
    attempt: number;
    /** Why not. */
    reason?: string | null;
    /** The sink. */
    sink?: string | null;
    type: "dead_letter";
  }
  /** A person had a dead letter tried again. */
  | {
    type: "retried";
  }
  /** Its owner has it, or will not get it. */
  | {
    /** How. */
    how: ToldHow;
    type: "told";
  }
  /** Nothing more will happen to the job. */
  | {
    type: "settled";
  }
  /** A turn of a session has begun. */
  | {
    /** What it is for. */
    cause: TurnCause;
    /** Its number. */
    turn: number;
    type: "turn_begun";
  }
  /** A turn of a session has ended. */
  | {
    /** How. */
    how: TurnHow;
    /** Its number. */
    turn: number;
    type: "turn_ended";
  }
  /** A message waits for a session. */
  | {
    /** Its number. */
    message: number;
    type: "message_queued";
  }
  /** A message was not delivered. */
  | {
    /** Whether a person has to act before another attempt is made. */
    dead_letter: boolean;
    /** Its number. */
    message: number;
    /** Why not. */
    reason: string;
    type: "message_not_delivered";
  }
  /** Nothing more is to be done about a message. */
  | {
    /** What became of it. */
    how: MessageHow;
    /** Its number. */
    message: number;
    type: "message_closed";
  }
);

/** The first line, from the server. */
export interface HelloDocument {
  /** The version of this document. */
  format: number;
  /** Where the store is. */
  home: string;
  /** The process of the server. */
  pid: number;
  /** The version of the protocol. A host that does not know it ends. */
  protocol: number;
  /** The version of hearback. */
  version: string;
}

/** What the history of a conversation ends with. */
export type HistoryWord =
  /** Tool results that the agent has not processed. */
  | "tool_results"
  /** A message of the agent or its user. */
  | "text"
  /** Nothing: the history is empty. */
  | "empty";

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface InboxDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The messages, in order for each session. */
  messages: MessageDocument[];
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface InstallDocumentReply {
  /** The commands of the service manager that were run, or with `--print` would be. */
  commands: OrderDocument[];
  /** Whether the service was installed or removed; false with `--print`. */
  done: boolean;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The file that describes the service. */
  file: OsText;
  /** The version of this document. */
  format: number;
  /** The service manager. */
  manager: ServiceManager;
  /** The name of the service. */
  name: string;
  /** The content of that file. */
  text: string;
}

/** A turn is to end: the notification `interrupt`. */
export interface InterruptDocument {
  /** The version of this document. */
  format: number;
  /** Why. */
  reason: Interruption;
  /** The session. */
  session: Session;
  /** The token of the turn. */
  turn: string;
}

/** A turn that was interrupted. */
export interface InterruptedDocument {
  /** When it was interrupted, if known (RFC 3339). */
  at?: string | null;
  /** Why it was interrupted. */
  reason: Interruption;
  /** The number of the turn. */
  turn: number;
}

/** Why a turn was interrupted. */
export type Interruption =
  /** The host was restarted. */
  | "restart"
  /** The host was stopped. */
  | "shutdown"
  /** A message arrived, and the setting `busy` is `interrupt`. */
  | "message"
  /** The process that ran it died. */
  | "crash"
  /** A reason that only a newer build knows. */
  | "unknown";

/** A follow-up or a message that this host holds. */
export interface ItemDocument {
  /** The number of this attempt, from 1. */
  attempt: number;
  /** The id of the delivery: the same in every attempt, so that a repeat is recognisable. */
  id: string;
  /** What it is. */
  kind: ItemKind;
  /** What a sink gets: a follow-up or a message in its envelope. */
  payload: unknown;
  /** Names the claim, for `ack` and `release`. It is used once. */
  token: string;
}

/** What an item is. */
export type ItemKind =
  /** A job has ended. */
  | "follow_up"
  /** Somebody sent a message. */
  | "message";

/**
 * Names a job on disk and on the command line. Always a legal file name on Windows and Unix.
 *
 * The first nine characters are the time of launch, so ids sort by age; the other seven are random, so the tail of
 * an id is its best short form.
 */
export type JobId = string;

/** One job, as `show --json`, `list --json` and `wait --json` print it. A field without a value is left out. */
export interface JobView {
  /** The agent whose session launched it, if it was found. */
  agent?: LaunchingAgent | null;
  /** The answer of a job that `ask` started, once it has ended. */
  answer?: Answer | null;
  /** Whether a monitor that restarts or stops kills it first (`--bound`). */
  bound?: boolean;
  /** The unit of a service manager, or the Job Object, in which it was launched and with which it ends. */
  bound_to?: string | null;
  /** The command that it runs; absent when its record cannot be read. */
  command?: Command | null;
  /** Its working directory. */
  cwd?: OsText | null;
  /** When it ended, as the supervisor observed it (RFC 3339). */
  ended_at?: string | null;
  /** The follow-up that notifies its owner. */
  follow_up: FollowUpView;
  /** The version of this document. */
  format: number;
  /** The id of the job. */
  id: JobId;
  /** The longest time without output, in milliseconds; absent when there is no limit. */
  idle_timeout_ms?: number | null;
  /** Its key, from `--key`. */
  key?: string | null;
  /** Its label, from `--label`. */
  label?: string | null;
  /** When it was launched (RFC 3339). */
  launched_at?: string | null;
  /** Whether it was launched through the MCP server. */
  mcp?: boolean;
  /** Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine. */
  notes?: string[];
  /** The pid namespace in which processes of it may still run: they could not be seen when its end was recorded. */
  out_of_sight?: string | null;
  /** How it ended. */
  outcome?: Outcome | null;
  /** Its output. */
  output: OutputView;
  /** Whether its main process is paused, by a signal or a suspend. Its limits still count. */
  paused?: boolean;
  /** The pid of its main process, to show to people. Pids are reused, so do not send signals to it. */
  pid?: number | null;
  /** The prompt of a job that `ask` started with `--prompt`. It is part of the command, too. */
  prompt?: string | null;
  /** How long it ran, in milliseconds, without the time in which the machine slept. */
  ran_ms?: number | null;
  /** The session that owns it. */
  session?: Session | null;
  /** When its main process was started (RFC 3339). */
  started_at?: string | null;
  /** The state of the job. */
  state: StateWord;
  /** What it survives. */
  survives?: string[];
  /** Pids of processes that outlived it and still run: they could not be killed, or were kept. */
  survivors?: number[];
  /** Whether other processes can write to its input (`--stdin`). */
  takes_input?: boolean;
  /** The longest time that it may run, in milliseconds; absent when there is no limit. */
  timeout_ms?: number | null;
  /** The CPU time and memory that it used. */
  usage?: Usage | null;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface JobViewReply {
  /** The agent whose session launched it, if it was found. */
  agent?: LaunchingAgent | null;
  /** The answer of a job that `ask` started, once it has ended. */
  answer?: Answer | null;
  /** Whether a monitor that restarts or stops kills it first (`--bound`). */
  bound?: boolean;
  /** The unit of a service manager, or the Job Object, in which it was launched and with which it ends. */
  bound_to?: string | null;
  /** The command that it runs; absent when its record cannot be read. */
  command?: Command | null;
  /** Its working directory. */
  cwd?: OsText | null;
  /** When it ended, as the supervisor observed it (RFC 3339). */
  ended_at?: string | null;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The follow-up that notifies its owner. */
  follow_up: FollowUpView;
  /** The version of this document. */
  format: number;
  /** The id of the job. */
  id: JobId;
  /** The longest time without output, in milliseconds; absent when there is no limit. */
  idle_timeout_ms?: number | null;
  /** Its key, from `--key`. */
  key?: string | null;
  /** Its label, from `--label`. */
  label?: string | null;
  /** When it was launched (RFC 3339). */
  launched_at?: string | null;
  /** Whether it was launched through the MCP server. */
  mcp?: boolean;
  /** Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine. */
  notes?: string[];
  /** The pid namespace in which processes of it may still run: they could not be seen when its end was recorded. */
  out_of_sight?: string | null;
  /** How it ended. */
  outcome?: Outcome | null;
  /** Its output. */
  output: OutputView;
  /** Whether its main process is paused, by a signal or a suspend. Its limits still count. */
  paused?: boolean;
  /** The pid of its main process, to show to people. Pids are reused, so do not send signals to it. */
  pid?: number | null;
  /** The prompt of a job that `ask` started with `--prompt`. It is part of the command, too. */
  prompt?: string | null;
  /** How long it ran, in milliseconds, without the time in which the machine slept. */
  ran_ms?: number | null;
  /** The session that owns it. */
  session?: Session | null;
  /** When its main process was started (RFC 3339). */
  started_at?: string | null;
  /** The state of the job. */
  state: StateWord;
  /** What it survives. */
  survives?: string[];
  /** Pids of processes that outlived it and still run: they could not be killed, or were kept. */
  survivors?: number[];
  /** Whether other processes can write to its input (`--stdin`). */
  takes_input?: boolean;
  /** The longest time that it may run, in milliseconds; absent when there is no limit. */
  timeout_ms?: number | null;
  /** The CPU time and memory that it used. */
  usage?: Usage | null;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface KillDocumentReply {
  /** Whether the job had ended before the kill. */
  already_ended: boolean;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The job. */
  id: JobId;
  /** The job, as it is now. */
  job: JobView;
  /** How many processes that had outlived the job were killed now. */
  leftovers_killed?: number;
  /** The end of its output, as much as `--output` says. */
  log?: LogDocument | null;
  /** The pid namespace in which processes of it may still run: they cannot be seen from here. */
  out_of_sight?: string | null;
  /** How it ended. */
  outcome?: Outcome | null;
  /** Pids of processes that could not be killed. */
  survivors?: number[];
}

/** What `kill` takes. */
export interface KillParams {
  /** Kill a supervisor that does not answer, too. */
  force?: boolean;
  /** How long its processes have between being terminated and being killed. */
  grace_ms?: number | null;
  /** The jobs. If one of them is not found, none is killed. */
  jobs: string[];
  /** Why, for the record. */
  reason?: string | null;
  /** Only jobs of this session, which kills them. */
  session?: Session | null;
}

/** Who requested a kill. */
export type KilledBy =
  /** An agent, in this session. */
  | {
    session: Session;
  }
  /** A caller outside any session. */
  | "person"
  /** The system, when it shuts down. */
  | "system"
  /** The monitor, which restarts or stops; the job was launched with `--bound`. */
  | "host"
  /** hearback, because the output exceeded the log cap. */
  | "output_limit"
  /** An actor that only a newer build knows. It was killed all the same. */
  | "unknown";

/** What `kill` answers. */
export interface KilledDocument {
  /** Why others are not known to have ended. */
  errors?: ErrorDetail[];
  /** The version of this document. */
  format: number;
  /** The jobs that have ended, each with why something of it is left, if that is so. */
  jobs: KillDocumentReply[];
}

/** What `launch --json` prints: the job, and what to expect when it ends. */
export interface LaunchDocument {
  /** The agent whose session launched it, if it was found. */
  agent?: LaunchingAgent | null;
  /** The answer of a job that `ask` started, once it has ended. */
  answer?: Answer | null;
  /** Whether a monitor that restarts or stops kills it first (`--bound`). */
  bound?: boolean;
  /** The unit of a service manager, or the Job Object, in which it was launched and with which it ends. */
  bound_to?: string | null;
  /** The command that it runs; absent when its record cannot be read. */
  command?: Command | null;
  /** Whether this launch made it; false if its key names a job that was launched before. */
  created: boolean;
  /** Its working directory. */
  cwd?: OsText | null;
  /** When it ended, as the supervisor observed it (RFC 3339). */
  ended_at?: string | null;
  /** What its owner can expect when it ends. */
  expect: ExpectationDocument;
  /** The follow-up that notifies its owner. */
  follow_up: FollowUpView;
  /** The version of this document. */
  format: number;
  /** The id of the job. */
  id: JobId;
  /** The longest time without output, in milliseconds; absent when there is no limit. */
  idle_timeout_ms?: number | null;
  /** Its key, from `--key`. */
  key?: string | null;
  /** Its label, from `--label`. */
  label?: string | null;
  /** When it was launched (RFC 3339). */
  launched_at?: string | null;
  /** Whether it was launched through the MCP server. */
  mcp?: boolean;
  /** Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine. */
  notes?: string[];
  /** The pid namespace in which processes of it may still run: they could not be seen when its end was recorded. */
  out_of_sight?: string | null;
  /** How it ended. */
  outcome?: Outcome | null;
  /** Its output. */
  output: OutputView;
  /** Whether its main process is paused, by a signal or a suspend. Its limits still count. */
  paused?: boolean;
  /** The pid of its main process, to show to people. Pids are reused, so do not send signals to it. */
  pid?: number | null;
  /** The prompt of a job that `ask` started with `--prompt`. It is part of the command, too. */
  prompt?: string | null;
  /** How long it ran, in milliseconds, without the time in which the machine slept. */
  ran_ms?: number | null;
  /** The session that owns it. */
  session?: Session | null;
  /** When its main process was started (RFC 3339). */
  started_at?: string | null;
  /** The state of the job. */
  state: StateWord;
  /** What it survives. */
  survives?: string[];
  /** Pids of processes that outlived it and still run: they could not be killed, or were kept. */
  survivors?: number[];
  /** Whether other processes can write to its input (`--stdin`). */
  takes_input?: boolean;
  /** The longest time that it may run, in milliseconds; absent when there is no limit. */
  timeout_ms?: number | null;
  /** The CPU time and memory that it used. */
  usage?: Usage | null;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface LaunchDocumentReply {
  /** The agent whose session launched it, if it was found. */
  agent?: LaunchingAgent | null;
  /** The answer of a job that `ask` started, once it has ended. */
  answer?: Answer | null;
  /** Whether a monitor that restarts or stops kills it first (`--bound`). */
  bound?: boolean;
  /** The unit of a service manager, or the Job Object, in which it was launched and with which it ends. */
  bound_to?: string | null;
  /** The command that it runs; absent when its record cannot be read. */
  command?: Command | null;
  /** Whether this launch made it; false if its key names a job that was launched before. */
  created: boolean;
  /** Its working directory. */
  cwd?: OsText | null;
  /** When it ended, as the supervisor observed it (RFC 3339). */
  ended_at?: string | null;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** What its owner can expect when it ends. */
  expect: ExpectationDocument;
  /** The follow-up that notifies its owner. */
  follow_up: FollowUpView;
  /** The version of this document. */
  format: number;
  /** The id of the job. */
  id: JobId;
  /** The longest time without output, in milliseconds; absent when there is no limit. */
  idle_timeout_ms?: number | null;
  /** Its key, from `--key`. */
  key?: string | null;
  /** Its label, from `--label`. */
  label?: string | null;
  /** When it was launched (RFC 3339). */
  launched_at?: string | null;
  /** Whether it was launched through the MCP server. */
  mcp?: boolean;
  /** Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine. */
  notes?: string[];
  /** The pid namespace in which processes of it may still run: they could not be seen when its end was recorded. */
  out_of_sight?: string | null;
  /** How it ended. */
  outcome?: Outcome | null;
  /** Its output. */
  output: OutputView;
  /** Whether its main process is paused, by a signal or a suspend. Its limits still count. */
  paused?: boolean;
  /** The pid of its main process, to show to people. Pids are reused, so do not send signals to it. */
  pid?: number | null;
  /** The prompt of a job that `ask` started with `--prompt`. It is part of the command, too. */
  prompt?: string | null;
  /** How long it ran, in milliseconds, without the time in which the machine slept. */
  ran_ms?: number | null;
  /** The session that owns it. */
  session?: Session | null;
  /** When its main process was started (RFC 3339). */
  started_at?: string | null;
  /** The state of the job. */
  state: StateWord;
  /** What it survives. */
  survives?: string[];
  /** Pids of processes that outlived it and still run: they could not be killed, or were kept. */
  survivors?: number[];
  /** Whether other processes can write to its input (`--stdin`). */
  takes_input?: boolean;
  /** The longest time that it may run, in milliseconds; absent when there is no limit. */
  timeout_ms?: number | null;
  /** The CPU time and memory that it used. */
  usage?: Usage | null;
}

/** What `launch` takes: `command` or `shell`, and how to run it. */
export interface LaunchParams {
  /** A program and its arguments, which no shell reads. */
  command?: string[] | null;
  /** The working directory, as an absolute path; by default that of the server. */
  cwd?: string | null;
  /** Variables that are set, or with `null` removed. The rest is the environment of the server. */
  env?: Record<string, string | null>;
  /** How long its processes have between being terminated and being killed. */
  grace_ms?: number | null;
  /** How long it may be silent. */
  idle_timeout_ms?: number | null;
  /** Makes the launch repeatable: the same key names the same job. */
  key?: string | null;
  /** A name for people. */
  label?: string | null;
  /** How much of its output is kept; `null` for all. At least 1 MiB. */
  log_cap_bytes?: number | null;
  /** When its owner is notified. */
  notify?: NotifyPolicy | null;
  /** The session that owns the job; by default that of the environment. */
  session?: Session | null;
  /** Text for a shell. */
  shell?: string | null;
  /** Where the follow-up goes, in this order. Left out, that of a session comes to a host that attends it. */
  sinks?: string[] | null;
  /** How long it may run; `null` for no limit. Left out, the settings decide. */
  timeout_ms?: number | null;
}

/**
 * The agent that launched a job, as it was found at launch. Its sessions belong to its directory, and its program need
 * not be on the `PATH` of the process that wakes it.
 */
export interface LaunchingAgent {
  /** Its working directory. */
  cwd?: OsText | null;
  /** Its name, such as `claude`. */
  name: string;
  /** Its process. While that lives, its session is open there. */
  process?: ProcessIdentity | null;
  /** Its program. */
  program?: OsText | null;
}

/** What `list --json` prints. */
export interface ListDocument {
  /** The version of this document. */
  format: number;
  /** The jobs, newest first. */
  jobs: JobView[];
  /** Jobs that could not be read. */
  problems?: Problem[];
  /** How many jobs there are in all; absent with a filter, or when there are too many to count. */
  total?: number | null;
  /** Whether more jobs may match: only the open ones and the newest of history were listed. */
  truncated: boolean;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface ListDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The jobs, newest first. */
  jobs: JobView[];
  /** Jobs that could not be read. */
  problems?: Problem[];
  /** How many jobs there are in all; absent with a filter, or when there are too many to count. */
  total?: number | null;
  /** Whether more jobs may match: only the open ones and the newest of history were listed. */
  truncated: boolean;
}

/** What `list` takes. */
export interface ListParams {
  /** The whole history. Otherwise what is open, and the newest 20 of it. */
  all?: boolean;
  /** Only jobs with this label. */
  label?: string | null;
  /** At most so many, the newest. */
  limit?: number | null;
  /** Only jobs that ended so: a kind of `outcome`. */
  outcome?: string | null;
  /** Only jobs of this session. */
  session?: Session | null;
  /** Only jobs in this state. */
  state?: StateWord | null;
}

/** What `logs --json` prints. */
export interface LogDocument {
  /** The size of all output so far. */
  bytes: number;
  /** How many of these bytes were dropped. */
  dropped: number;
  /** Where this document ends; pass it as `--offset` to continue reading. */
  end: number;
  /** The version of this document. */
  format: number;
  /** The job. */
  id: JobId;
  /** Where this document begins in the output, in bytes. */
  offset: number;
  /** How the job ended; only in a document that reaches the end of the output of an ended job. */
  outcome?: Outcome | null;
  /** The output from `offset` to `end`, in order. Each part begins where the one before it ends. */
  parts: LogPart[];
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface LogDocumentReply {
  /** The size of all output so far. */
  bytes: number;
  /** How many of these bytes were dropped. */
  dropped: number;
  /** Where this document ends; pass it as `--offset` to continue reading. */
  end: number;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The job. */
  id: JobId;
  /** Where this document begins in the output, in bytes. */
  offset: number;
  /** How the job ended; only in a document that reaches the end of the output of an ended job. */
  outcome?: Outcome | null;
  /** The output from `offset` to `end`, in order. Each part begins where the one before it ends. */
  parts: LogPart[];
}

/** A part of the output: text, or the reason why it is missing. */
export interface LogPart {
  /** Where it ends. */
  end: number;
  /** Why there is no text. A gap of the log is widened to whole lines. */
  missing?: Missing | null;
  /** Where it begins in the output, in bytes. */
  offset: number;
  /**
   * The text. Bytes that are not UTF-8 become replacement characters, and a secret its name, so its length is not
   * always that of the part.
   */
  text?: string | null;
}

/** Why it is unknown how a job ended. */
export type LostReason =
  /** The machine was restarted. Recorded only when that is proved. */
  | "reboot"
  /** Its supervisor died, and the rest of the job was killed. */
  | "supervisor_died"
  /**
   * Its supervisor died, and it is not known that all of its processes have ended: some survived a sweep, or could
   * not be seen by it.
   */
  | "unswept"
  /** The launch was interrupted before anything ran. */
  | "abandoned"
  /** The record of its end cannot be read. */
  | "unreadable"
  /** A reason that only a newer hearback knows. */
  | "unknown";

/** A message that waits, or that is a dead letter. */
export interface MessageDocument {
  /** How many attempts were made to deliver it. */
  attempts: number;
  /** Whether hearback gave up its delivery, or holds it for a person: `error` says why. */
  dead_letter: boolean;
  /** Why the last attempt failed. */
  error?: string | null;
  /** The number of the message. */
  message: number;
  /** When it was sent (RFC 3339). */
  sent_at?: string | null;
  /** The session that gets the message. */
  session: Session;
  /** The text of the message; absent when it cannot be read. */
  text?: string | null;
}

/** What became of a message. */
export type MessageHow =
  /** The agent accepted it. */
  | {
    kind: "delivered";
  }
  /** It was not delivered within `expire_after`. */
  | {
    kind: "expired";
  }
  /** A newer message interrupted its turn. */
  | {
    kind: "overtaken";
  }
  /** A caller discarded it. */
  | {
    kind: "discarded";
  }
  /** An end that only a newer build knows. Nothing more is to be done about it all the same. */
  | {
    kind: "unknown";
  };

/** A message, as a sink gets it; or, without a message, an interrupted turn to continue. */
export interface MessagePayload {
  /** The number of this attempt, from 1. */
  attempt: number;
  /** The working directory for the agent. */
  cwd?: OsText | null;
  /** The length of the chain of follow-ups that led here. */
  depth: number;
  /** Where the host shows the agent's messages. */
  destination?: string | null;
  /** The version of this document. */
  format: number;
  /** The id of the delivery: the same in every attempt, so that a repeat is recognisable. */
  id: string;
  /** The message as it was sent; absent when an interrupted turn continues. */
  message?: string | null;
  /** A note about an interrupted turn of the session. */
  note?: Note | null;
  /** The session that gets it. */
  session: Session;
  /** Note and message as text for a model. */
  text: string;
}

/** Why a part of the output is not printed. */
export type Missing =
  /** The log has it, but there was no room for it in `--max-bytes`. `--offset` prints it. */
  | "left_out"
  /** The output exceeded the log cap, and its middle was dropped. */
  | "cap"
  /** The output could not be written: the disk was full, or failed. */
  | "lost"
  /** For a reason that only a newer build knows. */
  | "unknown";

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface MonitorDocumentReply {
  /** Whether it answers; false for one that is paused, or leaves what is due undone. */
  answers: boolean;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The pid of the monitor. */
  pid?: number | null;
  /** Whether a monitor is running. */
  running: boolean;
  /** Whether a service manager runs the monitor. */
  service: boolean;
  /** All known sessions. */
  sessions: SessionDocument[];
  /** The settings, as this command sees them. */
  settings: EffectiveSetting[];
  /** When the monitor started (RFC 3339). */
  started_at?: string | null;
  /** What the monitor is about to do. */
  stopping?: StopKind | null;
  /** The version of the monitor. */
  version?: string | null;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface MonitorRequestDocumentReply {
  /** How many turns the monitor waits for, or waited for. */
  awaited_turns?: number | null;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** Whether the monitor ignored this repeat of an old request. */
  ignored: boolean;
  /** What was requested. */
  kind: StopKind;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface MonitorRunDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** What it was requested to do; absent if it ended by itself, as with `--once`. */
  stopped?: StopKind | null;
}

/** A note before the next message of a session, about an interrupted turn. */
export interface Note {
  /** What the turn was for. */
  cause?: TurnCause | null;
  /** The version of this document. */
  format: number;
  /** Why it was interrupted. */
  reason?: Interruption | null;
  /** Whether the turn itself requested the restart that interrupted it. */
  requested_restart: boolean;
  /** All of this as text for a model. */
  text: string;
  /** The number of the interrupted turn, if hearback recorded it. */
  turn?: number | null;
}

/** A notice to a destination that the monitor is about to restart or stop. */
export interface Notice {
  /** The destination that is notified. */
  destination: string;
  /** The version of this document. */
  format: number;
  /** The id of the notice. */
  id: string;
  /** What is about to happen. */
  kind: StopKind;
  /** The sessions there that are in a turn. */
  sessions: Session[];
  /** All of this as text. */
  text: string;
}

/** What the server tells without being asked. */
export type Notification =
  | {
    method: "hello";
    params: HelloDocument;
  }
  | {
    method: "turn";
    params: TurnDocument;
  }
  | {
    method: "due";
    params: DueDocument;
  }
  | {
    method: "interrupt";
    params: InterruptDocument;
  }
  | {
    method: "draining";
    params: DrainingDocument;
  }
  | {
    method: "event";
    params: HappenedDocument;
  }
  | {
    method: "events.ended";
    params: EventsEndedDocument;
  };

/** When the owner of a job is notified that it has ended. */
export type NotifyPolicy =
  /** Always, except when the session itself killed the job. */
  | "auto"
  /** Always. */
  | "always"
  /** Only if the job failed. */
  | "failure"
  /** Only if the job succeeded. */
  | "success"
  /** Never. */
  | "never"
  /**
   * A choice that only a newer build knows. The owner is told as under [`NotifyPolicy::Auto`]: once too often is
   * better than never.
   */
  | "unknown";

/** A command of the service manager. */
export interface OrderDocument {
  /** The program and its arguments. */
  argv: string[];
  /** Why it failed; absent if it succeeded or may fail. */
  error?: string | null;
}

/**
 * Text as the operating system has it: mostly UTF-8, but bound to nothing.
 *
 * Valid text is stored as a string, anything else as the exact units it is made of.
 */
export type OsText =
  /** Valid Unicode. */
  | string
  /** Bytes of a Unix name that are not UTF-8. */
  | {
    /** The bytes. */
    bytes: number[];
  }
  /** UTF-16 units of a Windows name that are not Unicode. */
  | {
    /** The units. */
    wide: number[];
  };

/**
 * How a job ended.
 *
 * A time limit, a kill and a failed start are outcomes with their own data, so that a caller need not interpret exit
 * codes. Only the supervisor, the parent of the target, records an exit; any other process may only record `lost`.
 */
export type Outcome =
  /** The command exited with this code. Windows codes keep all their 32 bits. */
  | {
    /** Zero is success. */
    code: number;
    kind: "exited";
  }
  /** A signal that hearback did not send killed the command. */
  | {
    /** Whether it left a core dump. */
    core: boolean;
    kind: "signaled";
    /** The signal's number. */
    signal: number;
  }
  /** The job exceeded its time limit. */
  | {
    /** How its main process then ended, if that was observed. */
    exit?: Exit | null;
    kind: "timed_out";
    /** The limit, in milliseconds. */
    limit_ms: number;
  }
  /** The job was without output for longer than its idle limit. */
  | {
    /** How its main process then ended, if that was observed. */
    exit?: Exit | null;
    kind: "idle_timed_out";
    /** The limit, in milliseconds. */
    limit_ms: number;
  }
  /** The job was killed on request. */
  | {
    /** Who requested it. */
    by: KilledBy;
    /** How its main process then ended, if that was observed. */
    exit?: Exit | null;
    kind: "killed";
    /** The reason that was given. */
    reason?: string | null;
  }
  /** The command could not be started, and nothing ran. */
  | {
    /** Why it could not be started. */
    error: StartError;
    kind: "failed_to_start";
  }
  /** How the job ended is unknown. */
  | {
    kind: "lost";
    /** Why that is unknown. */
    reason: LostReason;
  }
  /** An outcome that only a newer hearback knows. Never a success. */
  | {
    kind: "unknown";
  };

/**
 * The output of a job, cut to a budget and without control characters. Of a line that was overwritten, such as a
 * progress bar, it has the last state.
 */
export interface OutputExcerpt {
  /** The size of all output, in bytes. */
  bytes: number;
  /** The beginning of the output. */
  head: string;
  /** How many bytes are left out between head and tail. */
  omitted: number;
  /** The end of the output; empty when the head is everything. */
  tail: string;
}

/** What `output` takes: at most one of `offset`, `head` and `tail`. */
export interface OutputParams {
  /** Only the first lines. */
  head?: number | null;
  /** The job. */
  job: string;
  /** At most so many bytes; by default 64 KiB, and never more than 4 MiB. */
  max_bytes?: number | null;
  /** From this offset on. */
  offset?: number | null;
  /** Only a job of this session, which has read how it ended if the answer says so. */
  session?: Session | null;
  /** Only the last lines. */
  tail?: number | null;
}

/** The output of a job. */
export interface OutputView {
  /** The size of all output, in bytes. */
  bytes: number;
  /** How many of these bytes were dropped. */
  dropped: number;
  /** The dropped parts, in order. */
  gaps?: Gap[];
  /**
   * The last line that is not blank, cut to 200 characters; only where a preview is asked for, as by
   * `list --preview`.
   */
  last_line?: string | null;
  /**
   * The path of the log, until the job is pruned. Where the file system has no second names for files, it changes
   * when the job moves to the history.
   */
  path?: OsText | null;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface PluginCheckDocumentReply {
  /** The checks. */
  checks: ConformanceDocument[];
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** Whether all checks passed. */
  passed: boolean;
  /** The program that was checked. */
  program: OsText;
}

/** A job that could not be processed. */
export interface Problem {
  /** What failed. */
  error: string;
  /** The job. */
  id: JobId;
}

/** One process and no other: a pid is reused, a pid with the kernel's start token is not. */
export interface ProcessIdentity {
  /** The boot in which it was started. */
  boot?: BootId | null;
  /** The number by which the system signals it. */
  pid: number;
  /** Its pid namespace, where a system has several. */
  scope?: string | null;
  /** When the kernel says it was started, in the kernel's own units. */
  started: number;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface PruneDocumentReply {
  /** Whether this was a dry run, which changes nothing. */
  dry_run: boolean;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** Jobs that could not be removed. */
  problems: Problem[];
  /** The jobs that were removed; in a dry run, the jobs that would be removed. */
  pruned: JobId[];
  /** How many leftovers of crashes were removed. */
  tidied: number;
}

/** The first line of `events`: everything that happens from now on is read. */
export interface ReadyDocument {
  /** What to pass to `--since` to read on from here. */
  cursor: string;
  /** The version of this document. */
  format: number;
  /** `ready`. */
  type: ReadyType;
}

/** The type of the first line of `events`. */
export type ReadyType =
  /** The reader is ready. */
  | "ready";

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface ReconcileDocumentReply {
  /** Whether this was a dry run, which changes nothing. */
  dry_run: boolean;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** Jobs whose records could not be updated. */
  problems: Problem[];
  /** The steps that were done; in a dry run, the steps that would be done. */
  steps: StepDocument[];
}

/** Why an item is given back. */
export type ReleaseHow =
  /** Not now. No attempt is spent. */
  | "busy"
  /** The agent could not take it. An attempt is spent. */
  | "failed"
  /** The session no longer exists here: the next sink of the chain gets it. */
  | "gone";

/** What `release` takes. The item is free when its turn ends. */
export interface ReleaseParams {
  /** Why. */
  how: ReleaseHow;
  /** The same in words. */
  reason?: string | null;
  /** When to offer it again; otherwise after a pause that grows. Not for `gone`. */
  retry_after_ms?: number | null;
  /** The token of the item. */
  token: string;
}

/** How a request is named: text or a number. */
export type RequestId =
  | number
  | string;

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface ResultsDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** With `--ack`: how many more have ended than this call acknowledges. */
  more?: number;
  /** Jobs that could not be read. They may have an answer. */
  problems?: Problem[];
  /** The jobs in the arguments whose answer was already read. */
  read?: JobId[];
  /** The jobs that have ended and whose answer is unread; the one that ended first comes first. */
  results: JobView[];
  /** The jobs that have not ended. */
  running: JobView[];
}

/** The error of a request. */
export interface RpcError {
  /** -32000, or what JSON-RPC says about the request itself. */
  code: number;
  /** What kind of error it is, and what to try. */
  data: RpcErrorData;
  /** What failed, and why, for people. */
  message: string;
}

/** The error of a request, for programs. */
export interface RpcErrorData {
  /** The kind, as the errors of `--json` have it. */
  kind: ErrorKind;
  /** Which job it is about, as the caller named it. */
  subject?: string | null;
  /** What to try. */
  tip?: string | null;
}

/** What `send` takes. */
export interface SendParams {
  /** Where the host shows what the agent says. */
  destination?: string | null;
  /** The session that gets it. */
  session: Session;
  /** The sink that it goes to; by default where the last turn went, else the host that attends the session. */
  sink?: string | null;
  /** Its text. */
  text: string;
}

/** What `send --json` prints. */
export interface SentDocument {
  /** The version of this document. */
  format: number;
  /** Whether the session was in a turn. */
  in_turn: boolean;
  /** Whether the message interrupted a turn of the session. */
  interrupted: boolean;
  /** The number of the message. */
  message: number;
  /** The session that gets the message. */
  session: Session;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface SentDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** Whether the session was in a turn. */
  in_turn: boolean;
  /** Whether the message interrupted a turn of the session. */
  interrupted: boolean;
  /** The number of the message. */
  message: number;
  /** The session that gets the message. */
  session: Session;
}

export interface ServeParams {
  ack: AckParams;
  attend: AttendParams;
  /** A notification: it has no answer of its own. */
  cancel: CancelParams;
  events: EventsParams;
  "events.stop": EventsStopParams;
  kill: KillParams;
  launch: LaunchParams;
  list: ListParams;
  output: OutputParams;
  release: ReleaseParams;
  send: SendParams;
  show: ShowParams;
  "turn.claim": TurnClaimParams;
  "turn.close": TurnCloseParams;
  "turn.open": TurnOpenParams;
  unattend: AttendParams;
  wait: WaitParams;
}

/** Every message of `hearback serve`. Each line is an object of JSON-RPC 2.0. */
export interface ServeProtocol {
  /** The `error` of a request that failed. */
  error: RpcError;
  /** `method` and `params` of what the server tells without being asked. */
  notification: Notification;
  /** The `params` of each request of a host. */
  params: ServeParams;
  /** The `result` of each request. */
  results: ServeResults;
}

export interface ServeResults {
  ack: DoneDocument;
  attend: DoneDocument;
  events: SubscribedDocument;
  "events.stop": DoneDocument;
  kill: KilledDocument;
  launch: LaunchDocument;
  list: ListDocument;
  output: LogDocument;
  release: DoneDocument;
  send: SentDocument;
  show: ShowDocument;
  "turn.claim": ClaimedDocument;
  "turn.close": DoneDocument;
  "turn.open": TurnOpenedDocument;
  unattend: DoneDocument;
  wait: WaitedDocument;
}

/** The program that starts services at login, and restarts them. */
export type ServiceManager =
  /** The user's own systemd. */
  | "systemd"
  /** launchd of macOS. */
  | "launchd"
  /** The Task Scheduler of Windows. */
  | "task_scheduler";

/** The owner of a job: one conversation of one agent. Chosen by the host, opaque to us. */
export type Session = string;

/** The state of a session. */
export interface SessionDocument {
  /** Why the oldest of them is one. */
  dead_letter_error?: string | null;
  /** How many messages are dead letters: hearback gave up their delivery, or holds them for a person. */
  dead_letters: number;
  /** The destination of its last turn. */
  destination?: string | null;
  /** The newest turn that was interrupted since the last turn that succeeded. */
  interrupted?: InterruptedDocument | null;
  /** How many jobs it owns, among the open ones and the newest 1,000 of history. */
  jobs: number;
  /** When its last turn began (RFC 3339). */
  last_turn_at?: string | null;
  /** The name of the session. */
  session: Session;
  /** The sink of its last turn. */
  sink?: string | null;
  /** Why hearback no longer continues interrupted turns of this session. */
  suspended?: string | null;
  /** The number of the turn in progress; absent when there is none. */
  turn?: number | null;
  /** How many messages wait. */
  waiting: number;
  /** Whether they wait for a host that attends the session. */
  waits_for_host?: boolean;
}

/** A session that could not be read. */
export interface SessionProblem {
  /** What failed. */
  error: string;
  /** The session, or the name of its folder if it is not known whose it is. */
  session: string;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface SessionsDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** Sessions that could not be read. */
  problems: SessionProblem[];
  /** The sessions, sorted by name. */
  sessions: SessionDocument[];
}

/** Where the value of a setting comes from. */
export type SettingSource =
  /** A variable of the environment. */
  | "environment"
  /** The settings file. */
  | "file"
  /** The program that embeds hearback. */
  | "code"
  /** No value is set, or only an invalid one. */
  | "default";

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface SettingsDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The path of the settings file, whether it exists or not. */
  file: OsText;
  /** The version of this document. */
  format: number;
  /** The settings in force. */
  settings: EffectiveSetting[];
  /** Invalid values that were ignored, each with its reason. */
  warnings?: string[];
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface SetupDocumentReply {
  /** The agent. */
  agent: string;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** Its files. */
  files: SetupFileDocument[];
  /** The version of this document. */
  format: number;
}

/** A file of a set-up. */
export interface SetupFileDocument {
  /** Whether this call wrote or removed it. */
  changed: boolean;
  /** Where it is. */
  path: string;
  /** What was there before. */
  state: SetupState;
  /** What it should hold. */
  text: string;
}

/** What is there in place of a file of a set-up. */
export type SetupState =
  /** Nothing. */
  | "absent"
  /** The file, as it should be. */
  | "current"
  /** The file of an older set-up. */
  | "outdated"
  /** A file or an entry that hearback did not write. It is left alone. */
  | "foreign"
  /** A file that hearback cannot edit safely: the entry has to be made by hand. */
  | "by_hand";

/** What `show --json` prints: the job, and with `--output` the end of its output. */
export interface ShowDocument {
  /** The agent whose session launched it, if it was found. */
  agent?: LaunchingAgent | null;
  /** The answer of a job that `ask` started, once it has ended. */
  answer?: Answer | null;
  /** Whether a monitor that restarts or stops kills it first (`--bound`). */
  bound?: boolean;
  /** The unit of a service manager, or the Job Object, in which it was launched and with which it ends. */
  bound_to?: string | null;
  /** The command that it runs; absent when its record cannot be read. */
  command?: Command | null;
  /** Its working directory. */
  cwd?: OsText | null;
  /** When it ended, as the supervisor observed it (RFC 3339). */
  ended_at?: string | null;
  /** The follow-up that notifies its owner. */
  follow_up: FollowUpView;
  /** The version of this document. */
  format: number;
  /** The id of the job. */
  id: JobId;
  /** The longest time without output, in milliseconds; absent when there is no limit. */
  idle_timeout_ms?: number | null;
  /** Its key, from `--key`. */
  key?: string | null;
  /** Its label, from `--label`. */
  label?: string | null;
  /** When it was launched (RFC 3339). */
  launched_at?: string | null;
  /** The end of its output, as much as `--output` says. */
  log?: LogDocument | null;
  /** Whether it was launched through the MCP server. */
  mcp?: boolean;
  /** Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine. */
  notes?: string[];
  /** The pid namespace in which processes of it may still run: they could not be seen when its end was recorded. */
  out_of_sight?: string | null;
  /** How it ended. */
  outcome?: Outcome | null;
  /** Its output. */
  output: OutputView;
  /** Whether its main process is paused, by a signal or a suspend. Its limits still count. */
  paused?: boolean;
  /** The pid of its main process, to show to people. Pids are reused, so do not send signals to it. */
  pid?: number | null;
  /** The prompt of a job that `ask` started with `--prompt`. It is part of the command, too. */
  prompt?: string | null;
  /** How long it ran, in milliseconds, without the time in which the machine slept. */
  ran_ms?: number | null;
  /** The session that owns it. */
  session?: Session | null;
  /** When its main process was started (RFC 3339). */
  started_at?: string | null;
  /** The state of the job. */
  state: StateWord;
  /** What it survives. */
  survives?: string[];
  /** Pids of processes that outlived it and still run: they could not be killed, or were kept. */
  survivors?: number[];
  /** Whether other processes can write to its input (`--stdin`). */
  takes_input?: boolean;
  /** The longest time that it may run, in milliseconds; absent when there is no limit. */
  timeout_ms?: number | null;
  /** The CPU time and memory that it used. */
  usage?: Usage | null;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface ShowDocumentReply {
  /** The agent whose session launched it, if it was found. */
  agent?: LaunchingAgent | null;
  /** The answer of a job that `ask` started, once it has ended. */
  answer?: Answer | null;
  /** Whether a monitor that restarts or stops kills it first (`--bound`). */
  bound?: boolean;
  /** The unit of a service manager, or the Job Object, in which it was launched and with which it ends. */
  bound_to?: string | null;
  /** The command that it runs; absent when its record cannot be read. */
  command?: Command | null;
  /** Its working directory. */
  cwd?: OsText | null;
  /** When it ended, as the supervisor observed it (RFC 3339). */
  ended_at?: string | null;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The follow-up that notifies its owner. */
  follow_up: FollowUpView;
  /** The version of this document. */
  format: number;
  /** The id of the job. */
  id: JobId;
  /** The longest time without output, in milliseconds; absent when there is no limit. */
  idle_timeout_ms?: number | null;
  /** Its key, from `--key`. */
  key?: string | null;
  /** Its label, from `--label`. */
  label?: string | null;
  /** When it was launched (RFC 3339). */
  launched_at?: string | null;
  /** The end of its output, as much as `--output` says. */
  log?: LogDocument | null;
  /** Whether it was launched through the MCP server. */
  mcp?: boolean;
  /** Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine. */
  notes?: string[];
  /** The pid namespace in which processes of it may still run: they could not be seen when its end was recorded. */
  out_of_sight?: string | null;
  /** How it ended. */
  outcome?: Outcome | null;
  /** Its output. */
  output: OutputView;
  /** Whether its main process is paused, by a signal or a suspend. Its limits still count. */
  paused?: boolean;
  /** The pid of its main process, to show to people. Pids are reused, so do not send signals to it. */
  pid?: number | null;
  /** The prompt of a job that `ask` started with `--prompt`. It is part of the command, too. */
  prompt?: string | null;
  /** How long it ran, in milliseconds, without the time in which the machine slept. */
  ran_ms?: number | null;
  /** The session that owns it. */
  session?: Session | null;
  /** When its main process was started (RFC 3339). */
  started_at?: string | null;
  /** The state of the job. */
  state: StateWord;
  /** What it survives. */
  survives?: string[];
  /** Pids of processes that outlived it and still run: they could not be killed, or were kept. */
  survivors?: number[];
  /** Whether other processes can write to its input (`--stdin`). */
  takes_input?: boolean;
  /** The longest time that it may run, in milliseconds; absent when there is no limit. */
  timeout_ms?: number | null;
  /** The CPU time and memory that it used. */
  usage?: Usage | null;
}

/** What `show` takes: a job as people name one, or a key. */
export interface ShowParams {
  /** The job: its id, four characters of either end of it, its label or `@last`. Either this or `key`. */
  job?: string | null;
  /** The key that the job was launched with. */
  key?: string | null;
  /** Adds the end of its output as `log`, at most so many bytes. */
  output_bytes?: number | null;
  /** Only a job of this session. */
  session?: Session | null;
}

/** One sink. */
export interface SinkDocument {
  /** Its name. */
  name: string;
  /** Whether it can only take the follow-up of a job that has a session. */
  needs_session: boolean;
  /** Why it cannot be used: its program is missing, say, or its settings are invalid. */
  problem?: string | null;
  /** Whether it can be used here, as far as that is known without running it. */
  usable: boolean;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface SinkTestDocumentReply {
  /** Whether the sink accepted the sample. */
  delivered: boolean;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The reply of the sink. */
  reply: string;
  /** The sink. */
  sink: string;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface SinksDocumentReply {
  /** The same sinks, and those that the settings define wrongly, each with whether it can be used here. */
  details: SinkDocument[];
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The names of all sinks: configured and built in. */
  sinks: string[];
}

/** Why a command could not be started. */
export interface StartError {
  /** The kind of failure. */
  kind: StartErrorKind;
  /** The message of the operating system, with the name of the program or directory. */
  message: string;
}

/** The kinds of failed starts. */
export type StartErrorKind =
  /** The program does not exist. */
  | "not_found"
  /** The program cannot be executed. */
  | "not_executable"
  /** The working directory does not exist or cannot be entered. */
  | "bad_directory"
  /** Any other failure: out of memory, too many processes, arguments too long. */
  | "other"
  /** A kind that only a newer build knows. */
  | "unknown";

/** The state of a job, in one word. */
export type StateWord =
  /** The job is being launched. */
  | "starting"
  /** The job runs. */
  | "running"
  /** The job has ended with exit code 0. */
  | "done"
  /** The job has ended in any other way. */
  | "failed"
  /** Ended in a way that only a newer build knows: not with code 0, and not known to have failed. */
  | "ended";

/** One step of a reconcile. */
export interface StepDocument {
  /** The job. */
  id: JobId;
  /** `abandon`, `lose`, `answer`, `settle` or `archive`. */
  step: string;
}

/** What the monitor can be requested to do. In each case it accepts no new work and lets turns end. */
export type StopKind =
  /** Restart: turns may run until the limit, and continue afterwards. */
  | "restart"
  /** Stop: turns may run until the limit. */
  | "stop"
  /** Stop when every turn has ended, no matter how long that takes. */
  | "drain"
  /** A kind that only a newer build knows; taken for [`StopKind::Stop`], which promises least. */
  | "unknown";

/** What `events` answers. */
export interface SubscribedDocument {
  /** What to pass to `since` to read on from here. */
  cursor: string;
  /** The version of this document. */
  format: number;
  /** Names the subscription. */
  subscription: number;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface TimelineDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The jobs, newest first. */
  jobs: TimelineJob[];
  /** Jobs that could not be read. */
  problems?: Problem[];
  /** Whether more jobs may match: only the open ones and the newest of history are in it. */
  truncated: boolean;
}

/** A job, and the attempts to notify its owner. */
export interface TimelineJob {
  /** The agent whose session launched it, if it was found. */
  agent?: LaunchingAgent | null;
  /** The answer of a job that `ask` started, once it has ended. */
  answer?: Answer | null;
  /** The attempts, in order. */
  attempts: AttemptDocument[];
  /** Whether a monitor that restarts or stops kills it first (`--bound`). */
  bound?: boolean;
  /** The unit of a service manager, or the Job Object, in which it was launched and with which it ends. */
  bound_to?: string | null;
  /** The command that it runs; absent when its record cannot be read. */
  command?: Command | null;
  /** Its working directory. */
  cwd?: OsText | null;
  /** When it ended, as the supervisor observed it (RFC 3339). */
  ended_at?: string | null;
  /** The follow-up that notifies its owner. */
  follow_up: FollowUpView;
  /** The version of this document. */
  format: number;
  /** The id of the job. */
  id: JobId;
  /** The longest time without output, in milliseconds; absent when there is no limit. */
  idle_timeout_ms?: number | null;
  /** Its key, from `--key`. */
  key?: string | null;
  /** Its label, from `--label`. */
  label?: string | null;
  /** When it was launched (RFC 3339). */
  launched_at?: string | null;
  /** Whether it was launched through the MCP server. */
  mcp?: boolean;
  /** Remarks, such as: a fact cannot be read, a fact has a newer format, the job belongs to another machine. */
  notes?: string[];
  /** The pid namespace in which processes of it may still run: they could not be seen when its end was recorded. */
  out_of_sight?: string | null;
  /** How it ended. */
  outcome?: Outcome | null;
  /** Its output. */
  output: OutputView;
  /** Whether its main process is paused, by a signal or a suspend. Its limits still count. */
  paused?: boolean;
  /** The pid of its main process, to show to people. Pids are reused, so do not send signals to it. */
  pid?: number | null;
  /** The prompt of a job that `ask` started with `--prompt`. It is part of the command, too. */
  prompt?: string | null;
  /** How long it ran, in milliseconds, without the time in which the machine slept. */
  ran_ms?: number | null;
  /** The session that owns it. */
  session?: Session | null;
  /** When its main process was started (RFC 3339). */
  started_at?: string | null;
  /** The state of the job. */
  state: StateWord;
  /** What it survives. */
  survives?: string[];
  /** Pids of processes that outlived it and still run: they could not be killed, or were kept. */
  survivors?: number[];
  /** Whether other processes can write to its input (`--stdin`). */
  takes_input?: boolean;
  /** The longest time that it may run, in milliseconds; absent when there is no limit. */
  timeout_ms?: number | null;
  /** The CPU time and memory that it used. */
  usage?: Usage | null;
}

/** How the delivery of a follow-up ended. */
export type ToldHow =
  /** A sink accepted it. */
  | "delivered"
  /** The agent keeps it in a queue of its own. */
  | "queued"
  /** The owner has read the result itself. */
  | "read"
  /** A caller discarded it. */
  | "discarded"
  /** It was not delivered within `expire_after`. */
  | "expired"
  /** In a way that a newer hearback knows. */
  | "other";

/** What a turn is for. */
export type TurnCause =
  /** `hearback turn` runs an agent. */
  | {
    kind: "command";
  }
  /** A job has ended, or several at about the same time. */
  | {
    /** The delivery. */
    delivery: string;
    kind: "follow_up";
    /** The deliveries that are told in the same turn. */
    others?: string[];
  }
  /** A message arrived. */
  | {
    /** The number of the attempt, from 1. */
    attempt: number;
    kind: "message";
    /** Its number. */
    n: number;
  }
  /** An earlier turn was interrupted. */
  | {
    kind: "resume";
    /** Its number. */
    turn: number;
  }
  /** A cause that only a newer build knows. */
  | {
    kind: "unknown";
  };

/** What `turn.claim` takes. */
export interface TurnClaimParams {
  /** The token of the turn. */
  turn: string;
}

/** How a turn ended. */
export type TurnCloseHow =
  /** The agent did what it was asked. What is open of its items is acknowledged. */
  | "done"
  /** It did not. What is open of its items is given back, and an attempt is spent. */
  | "failed";

/** What `turn.close` takes. */
export interface TurnCloseParams {
  /** Why it failed. */
  error?: string | null;
  /** How it ended. */
  how: TurnCloseHow;
  /** The token of the turn. */
  turn: string;
}

/** A turn that the server has begun, because something is due: the notification `turn`. */
export interface TurnDocument {
  /** Where the host shows what the agent says. */
  destination?: string | null;
  /** Variables for the processes of the agent. By these they are found, and ended, if this host dies. */
  env: Record<string, string>;
  /** The version of this document. */
  format: number;
  /** What the turn holds. Empty in the answer of `turn.open`. */
  items: ItemDocument[];
  /** What the agent should hear first: the turn before was cut short. */
  note?: Note | null;
  /** The number of the turn. */
  number: number;
  /** The session. */
  session: Session;
  /** The note and the items as text for the agent. */
  text: string;
  /** The token of the turn. */
  turn: string;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface TurnDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** How the agent ended. */
  outcome: Outcome;
  /** The session. */
  session: Session;
}

/** The ways in which a turn ends. */
export type TurnHow =
  /** The agent did what it was asked. */
  | {
    kind: "done";
  }
  /** It did not. */
  | {
    /** Why. */
    error: string;
    kind: "failed";
  }
  /** It was cut short. */
  | {
    kind: "interrupted";
    /** Why. */
    reason: Interruption;
  }
  /** A way that only a newer build knows. The turn has ended all the same. */
  | {
    kind: "unknown";
  };

/** What `turn.open` takes. */
export interface TurnOpenParams {
  /** Where the host shows what the agent says. */
  destination?: string | null;
  /** What the history of the conversation ends with, if the host knows: it decides whether the agent gets a note. */
  history?: HistoryWord | null;
  /** The session. */
  session: Session;
  /** How long to wait while the session is in another turn. */
  wait_ms?: number;
}

/** A turn that this host runs: what `turn.open` answers. */
export interface TurnOpenedDocument {
  /** Where the host shows what the agent says. */
  destination?: string | null;
  /** Variables for the processes of the agent. By these they are found, and ended, if this host dies. */
  env: Record<string, string>;
  /** The version of this document. */
  format: number;
  /** What the turn holds. Empty in the answer of `turn.open`. */
  items: ItemDocument[];
  /** What the agent should hear first: the turn before was cut short. */
  note?: Note | null;
  /** The number of the turn. */
  number: number;
  /** The session. */
  session: Session;
  /** The token of the turn. */
  turn: string;
}

/** The CPU time and memory of a job, with the children that it waited for. */
export interface Usage {
  /** The largest memory of one of its processes. */
  peak_memory_bytes: number;
  /** CPU time in the kernel. */
  system_ms: number;
  /** CPU time in the program. */
  user_ms: number;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface VersionDocumentReply {
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The version of hearback. */
  version: string;
}

/** What `wait` takes. */
export interface WaitParams {
  /** Return when one of them has ended. */
  any?: boolean;
  /** The jobs. */
  jobs: string[];
  /** The session has not read how they ended. */
  peek?: boolean;
  /** Only jobs of this session, which has read how they ended when it is answered. */
  session?: Session | null;
  /** How long to wait; left out or `null`, until they have ended. */
  timeout_ms?: number | null;
}

/** What `wait` answers. */
export interface WaitedDocument {
  /** The version of this document. */
  format: number;
  /** The jobs as they are now, in the order of the request. */
  jobs: JobView[];
  /** Jobs that cannot be waited for. */
  problems?: Problem[];
  /** Whether the time of the wait passed before it was complete. The jobs continue. */
  timed_out: boolean;
}

/** A document, and why the command failed, if it did. Every command prints its document in this form. */
export interface WrittenDocumentReply {
  /** How many bytes the job can read now, or has read. */
  bytes: number;
  /** Whether its input was ended behind them. */
  ended: boolean;
  /** Why the command failed, wholly or in part; absent when it succeeded. */
  error?: ErrorDetail | null;
  /** The version of this document. */
  format: number;
  /** The job. */
  id: JobId;
}
