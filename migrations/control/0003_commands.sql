-- +goose Up

-- Every command that control issued, as it signed it, and what came of it.
CREATE TABLE commands (
    -- counts up: a rig's commands go to it in this order
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    rig        TEXT NOT NULL REFERENCES rigs (name),
    ledger     TEXT NOT NULL,  -- empty: whichever the rig has
    kind       TEXT NOT NULL,
    run        TEXT NOT NULL,
    args       TEXT NOT NULL,
    signed     BLOB NOT NULL,  -- as it goes on the bus
    actor      TEXT NOT NULL,
    issued_at  TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    request    TEXT,  -- the idempotency key of who gave it
    status     TEXT NOT NULL CHECK (status IN ('pending', 'applied', 'not_applied', 'rejected', 'expired', 'cancelled')),
    why        TEXT NOT NULL DEFAULT '',
    made       INTEGER NOT NULL DEFAULT 0,
    ended_at   TEXT,
    -- 'due' to be published; 'there' on the bus; to 'remove' from it; 'gone': nothing to do there
    bus        TEXT NOT NULL CHECK (bus IN ('due', 'there', 'remove', 'gone')),
    -- why the bus did not take it, since when
    held       TEXT NOT NULL DEFAULT '',
    held_since TEXT,
    UNIQUE (actor, request)
) STRICT;
CREATE INDEX commands_by_rig ON commands (rig, number);
CREATE INDEX commands_by_run ON commands (rig, run, number);
CREATE INDEX commands_pending ON commands (rig, number) WHERE status = 'pending';
CREATE INDEX commands_on_bus ON commands (rig, number) WHERE bus IN ('due', 'remove');
