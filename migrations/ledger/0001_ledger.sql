-- +goose Up

-- The ledgers this harness opened, the current one last.
CREATE TABLE ledgers (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT NOT NULL UNIQUE,
    opened_at TEXT NOT NULL
) STRICT;

-- Each event in canonical JSON, with the ledger's chain after it.
CREATE TABLE events (
    ledger INTEGER NOT NULL REFERENCES ledgers (number),
    id     INTEGER NOT NULL,
    event  BLOB    NOT NULL,
    chain  BLOB    NOT NULL,
    PRIMARY KEY (ledger, id)
) STRICT, WITHOUT ROWID;

-- A fold's state after an event, so that a start needs not replay from 1.
CREATE TABLE snapshots (
    ledger  INTEGER NOT NULL REFERENCES ledgers (number),
    fold    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    id      INTEGER NOT NULL,
    state   BLOB    NOT NULL,
    PRIMARY KEY (ledger, fold)
) STRICT, WITHOUT ROWID;
