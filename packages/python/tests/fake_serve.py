"""A stand-in for `hearback serve` that does at once what the real one does at bad moments. Each line that it reads is
added to the file $FAKE_LOG, so that a test sees what a client sent, to which process."""

import json
import os
import sys

HELLO = {"format": 1, "protocol": 1, "version": "0.0.0", "home": "/fake", "pid": os.getpid()}


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def event(number, subscription):
    return {
        "method": "event",
        "params": {
            "subscription": subscription,
            "format": 1,
            "type": "launched",
            "cursor": str(number),
            "id": str(number),
        },
    }


def main():
    mode = os.environ.get("FAKE_MODE", "")
    if mode == "mute":
        sys.exit(3)
    if mode == "garbage":
        print("This is not JSON.", flush=True)
        sys.stdin.readline()
        return
    write({"method": "hello", "params": {**HELLO, "protocol": 2 if mode == "newer" else 1}})
    subscriptions = 0
    for line in sys.stdin:
        message = json.loads(line)
        with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:
            log.write(json.dumps({"pid": os.getpid(), **message}) + "\n")
        method, params, number = message["method"], message.get("params", {}), message.get("id")
        died_before = os.path.exists(os.environ["FAKE_LOG"] + ".died")
        if method == "die" or (method in os.environ.get("FAKE_DIES_AT", "").split() and not died_before):
            open(os.environ["FAKE_LOG"] + ".died", "w").close()
            os._exit(9)
        elif method == "cancel":
            write(
                {"id": params["id"], "error": {"code": -32000, "message": "cancelled", "data": {"kind": "cancelled"}}}
            )
        elif method == "wait" and not died_before:
            pass
        elif method == "fail":
            data = {"kind": "unknown_job", "tip": "see `hearback list`", "subject": "x"}
            write({"id": number, "error": {"code": -32000, "message": "no job `x`", "data": data}})
        elif method == "garble":
            print("}{", flush=True)
        elif method == "turn.open":
            # The reply and what refers to it, in one breath.
            write({"id": number, "result": {"format": 1, "turn": "t1", "number": 1, "items": []}})
            write({"method": "due", "params": {"session": params["session"], "turn": "t1", "count": 1}})
        elif method == "turn.claim":
            payload = {"data": {"text": "it has ended"}}
            item = {"token": "i1", "kind": "follow_up", "id": "j.end", "attempt": 1, "payload": payload}
            write({"id": number, "result": {"format": 1, "items": [item]}})
        elif method == "attend":
            write({"id": number, "result": {"format": 1}})
            turn = {"turn": f"t{os.getpid()}", "session": "s", "number": 1, "items": [], "text": "hello"}
            write({"method": "turn", "params": turn})
        elif method == "interrupt":
            write({"id": number, "result": {"format": 1}})
            write({"method": "interrupt", "params": {"turn": params["turn"], "session": "s", "reason": "drain"}})
        elif method == "events":
            subscriptions += 1
            since = params["since"]
            first = 0 if since in ("beginning", "now") else int(since) + 1
            write({"id": number, "result": {"format": 1, "subscription": subscriptions, "cursor": str(first - 1)}})
            # As many as there are, whether the reader reads or not.
            for one in range(first, int(os.environ.get("FAKE_EVENTS", "0"))):
                write(event(one, subscriptions))
        else:
            write({"id": number, "result": {"format": 1, "pid": os.getpid(), "params": params}})


if __name__ == "__main__":
    main()
