-- +goose Up

-- The ledgers this harness opened, the current one last. Event n of a ledger
-- is at place base + n in events, so that one table in one order holds them
-- all, and the next ledger's base is the last place before it.
CREATE TABLE ledgers (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT    NOT NULL UNIQUE,
    base      INTEGER NOT NULL UNIQUE,
    opened_at TEXT    NOT NULL
) STRICT;

-- Each event in canonical JSON, with its ledger's chain after it.
CREATE TABLE events (
    place INTEGER PRIMARY KEY,
    event BLOB NOT NULL,
    chain BLOB NOT NULL
) STRICT;

-- A fold's state after event id of a ledger, so that a start needs not replay
-- from 1. hash is SHA-256 over all of it and the ledger's chain there: see
-- snapshotHash.
CREATE TABLE snapshots (
    ledger  INTEGER NOT NULL REFERENCES ledgers (number),
    fold    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    id      INTEGER NOT NULL,
    state   BLOB    NOT NULL,
    hash    BLOB    NOT NULL,
    PRIMARY KEY (ledger, fold)
) STRICT;
