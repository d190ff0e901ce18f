-- +goose Up

-- A collection of the knowledge base: a campaign's. Every run may search one
-- that is open; a closed one is for the campaign's own runs.
CREATE TABLE kb_collections (
    id   INTEGER PRIMARY KEY,
    name TEXT    NOT NULL UNIQUE,
    open INTEGER NOT NULL DEFAULT 1
) STRICT;

-- The runs that are filed in one: a run stays where it was filed first.
CREATE TABLE kb_runs (
    id         INTEGER PRIMARY KEY,
    rig        TEXT    NOT NULL,
    ledger     TEXT    NOT NULL,
    run        TEXT    NOT NULL,
    collection INTEGER NOT NULL REFERENCES kb_collections (id),
    UNIQUE (rig, ledger, run)
) STRICT;
CREATE INDEX kb_runs_by_collection ON kb_runs (collection);

-- The items, one a slot and key of a run.
CREATE TABLE kb_items (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    filed       INTEGER NOT NULL REFERENCES kb_runs (id),
    slot        TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    kind        TEXT    NOT NULL,  -- of the event it was made from
    actor       TEXT    NOT NULL,
    event       INTEGER NOT NULL,  -- its number in the ledger
    at          TEXT    NOT NULL,
    title       TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    tags        TEXT    NOT NULL,  -- a line each
    file_name   TEXT,
    file_size   INTEGER,
    file_sha256 TEXT,
    -- what a search goes by beside its words: the collection and the run
    scope       TEXT    NOT NULL,
    UNIQUE (filed, slot, key)
) STRICT;
CREATE INDEX kb_items_by_file ON kb_items (file_sha256) WHERE file_sha256 IS NOT NULL;

-- What is indexed of an item: of a long text, its beginning.
CREATE VIEW kb_indexed AS SELECT id, title, substr(text, 1, 262144) AS text, tags, scope FROM kb_items;

CREATE VIRTUAL TABLE kb_text USING fts5 (
    title, text, tags, scope,
    content = 'kb_indexed', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);

-- +goose StatementBegin
CREATE TRIGGER kb_items_made AFTER INSERT ON kb_items BEGIN
    INSERT INTO kb_text (rowid, title, text, tags, scope) VALUES (new.id, new.title, substr(new.text, 1, 262144), new.tags, new.scope);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER kb_items_changed AFTER UPDATE OF title, text, tags, scope ON kb_items BEGIN
    INSERT INTO kb_text (kb_text, rowid, title, text, tags, scope) VALUES ('delete', old.id, old.title, substr(old.text, 1, 262144), old.tags, old.scope);
    INSERT INTO kb_text (rowid, title, text, tags, scope) VALUES (new.id, new.title, substr(new.text, 1, 262144), new.tags, new.scope);
END;
-- +goose StatementEnd

-- The files that control keeps, by their SHA-256 in hex.
CREATE TABLE kb_files (
    sha256  TEXT    PRIMARY KEY,
    size    INTEGER NOT NULL,
    rig     TEXT    NOT NULL,  -- that put it first
    kept_at TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Which way of reading the events the items were made in. One row.
CREATE TABLE kb_reading (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO kb_reading (one, version) VALUES (1, 0);
