-- +goose Up

-- What the rigs' supervisors sent with their asks: a rig's daily reports, one
-- a day, and what the rig keeps on its disk, the newest alone.
CREATE TABLE daily_reports (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    rig        TEXT NOT NULL REFERENCES rigs (name),
    day        TEXT NOT NULL,  -- YYYY-MM-DD
    ledger     TEXT NOT NULL,
    from_time  TEXT NOT NULL,
    to_time    TEXT NOT NULL,
    made_at    TEXT NOT NULL,
    taken_at   TEXT NOT NULL,
    text       TEXT NOT NULL,  -- Markdown
    characters INTEGER NOT NULL,
    UNIQUE (rig, day)
) STRICT;

CREATE TABLE rig_space (
    rig      TEXT PRIMARY KEY REFERENCES rigs (name),
    taken_at TEXT NOT NULL,
    report   TEXT NOT NULL  -- wire.SpaceReport, JSON
) STRICT, WITHOUT ROWID;
