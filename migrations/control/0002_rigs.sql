-- +goose Up

CREATE TABLE rigs (
    name       TEXT PRIMARY KEY,
    token      BLOB NOT NULL UNIQUE,  -- SHA-256 of the rig's token
    created_at TEXT NOT NULL,
    retired_at TEXT,
    bus_key    TEXT,
    seal_key   TEXT,
    registered_at TEXT,  -- the last registration that control took
    keys_missing_at TEXT,  -- a later call with no keys
    -- the harness's report key that control takes pages by, and the one that waits for the owner
    report_key     TEXT,
    waiting_key    TEXT,
    waiting_since  TEXT,
    figures        TEXT,  -- the last wire.Figures, JSON
    figures_at     TEXT
) STRICT, WITHOUT ROWID;

-- Every key that a rig, a retired one too, or control ever held on the bus.
CREATE TABLE keys (
    key      TEXT NOT NULL PRIMARY KEY,
    kind     TEXT NOT NULL CHECK (kind IN ('bus', 'seal')),
    rig      TEXT REFERENCES rigs (name),  -- NULL: control
    since    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A rig's history, step by step.
CREATE TABLE rig_history (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    rig    TEXT NOT NULL REFERENCES rigs (name),
    at     TEXT NOT NULL,
    step   TEXT NOT NULL,
    text   TEXT NOT NULL,
    detail TEXT NOT NULL  -- a JSON object
) STRICT;
CREATE INDEX rig_history_by_rig ON rig_history (rig, id);
CREATE INDEX rig_history_by_step ON rig_history (rig, step, id);

-- What needs the owner, until it is answered or seen.
CREATE TABLE needs (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    code    TEXT NOT NULL,
    subject TEXT NOT NULL,  -- a rig's name, or empty
    detail  TEXT NOT NULL,  -- words
    since   TEXT NOT NULL,
    UNIQUE (code, subject)
) STRICT;

-- Tokens of the owner and of readers; sessions of the dashboard.
CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    hash       BLOB NOT NULL UNIQUE,  -- SHA-256 of the token
    role       TEXT NOT NULL CHECK (role IN ('owner', 'reader')),
    name       TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT;

CREATE TABLE sessions (
    hash       BLOB PRIMARY KEY,  -- SHA-256 of the cookie's value
    token      INTEGER NOT NULL REFERENCES tokens (id),
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
