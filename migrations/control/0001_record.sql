-- +goose Up

-- The last event of each rig's ledger that the apply applied: the held
-- cursor, with the ledger's chain there. Without a chain, control does not
-- know it: the stream lacks events before the cursor. The floor is the last
-- event that a retention policy removed on purpose.
CREATE TABLE held (
    rig     TEXT    NOT NULL,
    ledger  TEXT    NOT NULL,
    cursor  INTEGER NOT NULL,
    chain   BLOB,
    floor   INTEGER NOT NULL DEFAULT 0,
    -- counts the rig's ledgers: the one with the highest is the current one
    number  INTEGER NOT NULL,
    PRIMARY KEY (rig, ledger)
) STRICT, WITHOUT ROWID;

-- The place in EVENTS that the store applied through, and the last message
-- that was read on the way: its place and its id there. One row.
CREATE TABLE place (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    seq     INTEGER NOT NULL,
    read    INTEGER NOT NULL,
    message TEXT    NOT NULL
) STRICT;
INSERT INTO place (one, seq, read, message) VALUES (1, 0, 0, '');

-- The run registry: which rig holds which run.
CREATE TABLE runs (
    run        TEXT    NOT NULL,
    rig        TEXT    NOT NULL,
    -- 'assigned' by control, or 'made' on the rig
    origin     TEXT    NOT NULL CHECK (origin IN ('assigned', 'made')),
    campaign   TEXT    NOT NULL,
    created_at TEXT    NOT NULL,
    -- counts up: the newest runs of a rig are those with the highest
    number     INTEGER NOT NULL,
    PRIMARY KEY (run, rig)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_number ON runs (number);
CREATE INDEX runs_by_campaign ON runs (campaign);

-- Campaigns of control's own.
CREATE TABLE campaigns (
    name       TEXT PRIMARY KEY,
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What was done or refused, by whom, when and from where.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      TEXT NOT NULL,
    actor   TEXT NOT NULL,
    source  TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT NOT NULL  -- a JSON object
) STRICT;
CREATE INDEX audit_by_subject ON audit (subject, id);
