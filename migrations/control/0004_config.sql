-- +goose Up

-- How models are reached. A secret is sealed to control's secrets key: it holds
-- the key, the headers and what renews them, and is NULL where there is none.
CREATE TABLE model_routes (
    name       TEXT PRIMARY KEY,
    api        TEXT NOT NULL,
    base_url   TEXT NOT NULL,
    model      TEXT NOT NULL,
    secret     BLOB,
    -- the names of the headers that the secret holds, a JSON list, and whether it is renewed
    headers    TEXT NOT NULL DEFAULT '[]',
    has_key    INTEGER NOT NULL DEFAULT 0,
    renews     INTEGER NOT NULL DEFAULT 0,
    changed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Which route a role of a rig uses: agents, planner, or an advisor's role.
CREATE TABLE model_route_uses (
    rig   TEXT NOT NULL,  -- empty: every rig that has no row of its own for the role
    role  TEXT NOT NULL,
    route TEXT NOT NULL REFERENCES model_routes (name) ON DELETE CASCADE,
    PRIMARY KEY (rig, role)
) STRICT, WITHOUT ROWID;
CREATE INDEX model_route_uses_by_route ON model_route_uses (route);

CREATE TABLE mcp_servers (
    name       TEXT PRIMARY KEY,
    url        TEXT NOT NULL,
    secret     BLOB,
    headers    TEXT NOT NULL DEFAULT '[]',
    renews     INTEGER NOT NULL DEFAULT 0,
    changed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE git_accesses (
    name       TEXT PRIMARY KEY,
    host       TEXT NOT NULL,
    username   TEXT NOT NULL,
    secret     BLOB NOT NULL,
    changed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The assignments that name a Git access or MCP servers, which are few.
CREATE INDEX commands_that_name ON commands (number)
    WHERE kind = 'run.assign' AND (instr(args, '"git_access"') > 0 OR instr(args, '"mcp_servers"') > 0);
