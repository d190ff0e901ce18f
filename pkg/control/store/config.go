package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// ModelRoute is a route as the store has it: its secret is sealed.
type ModelRoute struct {
	Name, API, BaseURL, Model string
	// Sealed is nil where there is no secret.
	Sealed []byte
	// Headers are the names of those that the secret holds, HasKey that it
	// holds a key, and Renews that control renews it.
	Headers        []string
	HasKey, Renews bool
	ChangedAt      time.Time
}

// RouteUse says that a role of a rig uses a route. Rig is empty for every rig
// that has none of its own for the role.
type RouteUse struct{ Rig, Role, Route string }

// MCPServer is an MCP server as the store has it.
type MCPServer struct {
	Name, URL string
	Sealed    []byte
	Headers   []string
	Renews    bool
	ChangedAt time.Time
}

// GitAccess is a Git access as the store has it.
type GitAccess struct {
	Name, Host, Username string
	Sealed               []byte
	ChangedAt            time.Time
}

// configRow is a row of any of the tables.
type configRow struct {
	Name, API, URL, Model, Host, Username string
	BaseURL                               string `db:"base_url"`
	Secret                                []byte
	Headers                               string
	HasKey                                bool `db:"has_key"`
	Renews                                bool
	ChangedAt                             string `db:"changed_at"`
}

func (w configRow) read() (headers []string, at time.Time, err error) {
	if w.Headers != "" {
		err = json.Unmarshal([]byte(w.Headers), &headers)
	}
	at, atErr := unstamp(w.ChangedAt)
	return headers, at, errors.Join(err, atErr)
}

// configRows reads a table's rows into what of gives.
func configRows[T any](ctx context.Context, q sqlx.QueryerContext, what, query string, args []any, of func(configRow, []string, time.Time) T) ([]T, error) {
	var rows []configRow
	if err := sqlx.SelectContext(ctx, q, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("reading the %s: %w", what, err)
	}
	all := make([]T, len(rows))
	for i, w := range rows {
		headers, at, err := w.read()
		if err != nil {
			return nil, fmt.Errorf("reading %s of the %s: %w", w.Name, what, err)
		}
		all[i] = of(w, headers, at)
	}
	return all, nil
}

// one gives the only one of all, or ErrNotFound.
func one[T any](what, name string, all []T, err error) (T, error) {
	var none T
	switch {
	case err != nil:
		return none, err
	case len(all) == 0:
		return none, fmt.Errorf("%s %s: %w", what, name, ErrNotFound)
	}
	return all[0], nil
}

func modelRoute(w configRow, headers []string, at time.Time) ModelRoute {
	return ModelRoute{Name: w.Name, API: w.API, BaseURL: w.BaseURL, Model: w.Model, Sealed: w.Secret, Headers: headers, HasKey: w.HasKey, Renews: w.Renews, ChangedAt: at}
}

func mcpServer(w configRow, headers []string, at time.Time) MCPServer {
	return MCPServer{Name: w.Name, URL: w.URL, Sealed: w.Secret, Headers: headers, Renews: w.Renews, ChangedAt: at}
}

func gitAccess(w configRow, _ []string, at time.Time) GitAccess {
	return GitAccess{Name: w.Name, Host: w.Host, Username: w.Username, Sealed: w.Secret, ChangedAt: at}
}

// ModelRoutes gives every route, by name.
func (s *Store) ModelRoutes(ctx context.Context) ([]ModelRoute, error) {
	return configRows(ctx, s.Read(), "model routes", `SELECT * FROM model_routes ORDER BY name`, nil, modelRoute)
}

// ModelRouteIn gives the route of that name as tx sees it, or ErrNotFound.
func (s *Store) ModelRouteIn(ctx context.Context, tx *sqlx.Tx, name string) (ModelRoute, error) {
	all, err := configRows(ctx, tx, "model routes", `SELECT * FROM model_routes WHERE name = ?`, []any{name}, modelRoute)
	return one("model route", name, all, err)
}

// MCPServers gives every MCP server, by name.
func (s *Store) MCPServers(ctx context.Context) ([]MCPServer, error) {
	return configRows(ctx, s.Read(), "MCP servers", `SELECT * FROM mcp_servers ORDER BY name`, nil, mcpServer)
}

// MCPServerIn gives the server of that name as tx sees it, or ErrNotFound.
func (s *Store) MCPServerIn(ctx context.Context, tx *sqlx.Tx, name string) (MCPServer, error) {
	all, err := configRows(ctx, tx, "MCP servers", `SELECT * FROM mcp_servers WHERE name = ?`, []any{name}, mcpServer)
	return one("MCP server", name, all, err)
}

// GitAccesses gives every Git access, by name.
func (s *Store) GitAccesses(ctx context.Context) ([]GitAccess, error) {
	return configRows(ctx, s.Read(), "Git accesses", `SELECT * FROM git_accesses ORDER BY name`, nil, gitAccess)
}

// GitAccessIn gives the access of that name as tx sees it, or ErrNotFound.
func (s *Store) GitAccessIn(ctx context.Context, tx *sqlx.Tx, name string) (GitAccess, error) {
	all, err := configRows(ctx, tx, "Git accesses", `SELECT * FROM git_accesses WHERE name = ?`, []any{name}, gitAccess)
	return one("Git access", name, all, err)
}

// RouteUses gives which roles use which route, by rig and role.
func (s *Store) RouteUses(ctx context.Context) (uses []RouteUse, err error) {
	if err = s.Read().SelectContext(ctx, &uses, `SELECT rig, role, route FROM model_route_uses ORDER BY rig, role`); err != nil {
		return nil, fmt.Errorf("reading which model routes are used: %w", err)
	}
	return uses, nil
}

// namesJSON gives the names as a column has them.
func namesJSON(names []string) (string, error) {
	if len(names) == 0 {
		return "[]", nil
	}
	b, err := json.Marshal(names)
	return string(b), err
}

// SetModelRoute writes the route.
func (s *Store) SetModelRoute(ctx context.Context, tx *sqlx.Tx, r ModelRoute) error {
	headers, err := namesJSON(r.Headers)
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO model_routes (name, api, base_url, model, secret, headers, has_key, renews, changed_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET api = excluded.api, base_url = excluded.base_url, model = excluded.model,
			secret = excluded.secret, headers = excluded.headers, has_key = excluded.has_key, renews = excluded.renews, changed_at = excluded.changed_at`,
			r.Name, r.API, r.BaseURL, r.Model, r.Sealed, headers, r.HasKey, r.Renews, stamp(r.ChangedAt))
	}
	return wrote("the model route", r.Name, err)
}

// SetRouteUses writes that these roles, and no other, use the route: each
// leaves the route that it used before.
func (s *Store) SetRouteUses(ctx context.Context, tx *sqlx.Tx, route string, uses []RouteUse) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM model_route_uses WHERE route = ?`, route)
	for _, u := range uses {
		if err != nil {
			break
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO model_route_uses (rig, role, route) VALUES (?, ?, ?)
			ON CONFLICT (rig, role) DO UPDATE SET route = excluded.route`, u.Rig, u.Role, route)
	}
	return wrote("the uses of the model route", route, err)
}

// SetMCPServer writes the server.
func (s *Store) SetMCPServer(ctx context.Context, tx *sqlx.Tx, m MCPServer) error {
	headers, err := namesJSON(m.Headers)
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO mcp_servers (name, url, secret, headers, renews, changed_at) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET url = excluded.url, secret = excluded.secret, headers = excluded.headers, renews = excluded.renews,
			changed_at = excluded.changed_at`, m.Name, m.URL, m.Sealed, headers, m.Renews, stamp(m.ChangedAt))
	}
	return wrote("the MCP server", m.Name, err)
}

// SetGitAccess writes the access.
func (s *Store) SetGitAccess(ctx context.Context, tx *sqlx.Tx, a GitAccess) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO git_accesses (name, host, username, secret, changed_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET host = excluded.host, username = excluded.username, secret = excluded.secret, changed_at = excluded.changed_at`,
		a.Name, a.Host, a.Username, a.Sealed, stamp(a.ChangedAt))
	return wrote("the Git access", a.Name, err)
}

func wrote(what, name string, err error) error {
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", what, name, err)
	}
	return nil
}

// RemoveModelRoute, RemoveMCPServer and RemoveGitAccess remove the one of that
// name, or give ErrNotFound.
func (s *Store) RemoveModelRoute(ctx context.Context, tx *sqlx.Tx, name string) error {
	return remove(ctx, tx, "the model route", `DELETE FROM model_routes WHERE name = ?`, name)
}

// RemoveMCPServer is as RemoveModelRoute.
func (s *Store) RemoveMCPServer(ctx context.Context, tx *sqlx.Tx, name string) error {
	return remove(ctx, tx, "the MCP server", `DELETE FROM mcp_servers WHERE name = ?`, name)
}

// RemoveGitAccess is as RemoveModelRoute.
func (s *Store) RemoveGitAccess(ctx context.Context, tx *sqlx.Tx, name string) error {
	return remove(ctx, tx, "the Git access", `DELETE FROM git_accesses WHERE name = ?`, name)
}

func remove(ctx context.Context, tx *sqlx.Tx, what, query, name string) error {
	res, err := tx.ExecContext(ctx, query, name)
	if err != nil {
		return fmt.Errorf("removing %s %s: %w", what, name, err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("%s %s: %w", what, name, ErrNotFound))
	}
	return nil
}

// ConfigRig is a rig that gets a config: it has a seal key and is not retired.
type ConfigRig struct {
	Rig  string
	Seal wire.SealKey
}

// ConfigRigs gives every rig that gets a config, by name.
func (s *Store) ConfigRigs(ctx context.Context) ([]ConfigRig, error) {
	var rows []struct {
		Name string
		Key  string `db:"seal_key"`
	}
	err := s.Read().SelectContext(ctx, &rows, `SELECT name, seal_key FROM rigs WHERE seal_key IS NOT NULL AND bus_key IS NOT NULL AND retired_at IS NULL ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("reading the rigs that get a config: %w", err)
	}
	all := make([]ConfigRig, len(rows))
	for i, r := range rows {
		all[i].Rig = r.Name
		if err := all[i].Seal.UnmarshalText([]byte(r.Key)); err != nil {
			return nil, fmt.Errorf("reading the seal key of rig %s: %w", r.Name, err)
		}
	}
	return all, nil
}

// Naming is an assignment that names a Git access or MCP servers.
type Naming struct {
	Rig, Run, Ledger string
	Args             []byte
	IssuedAt         time.Time
}

// Namings gives the assignments that name a Git access or MCP servers and are
// pending or applied, the oldest first.
func (s *Store) Namings(ctx context.Context) ([]Naming, error) {
	var rows []struct {
		Rig, Run, Ledger, Args string
		IssuedAt               string `db:"issued_at"`
	}
	// As the index commands_that_name has it, so that it is used.
	err := s.Read().SelectContext(ctx, &rows, `SELECT rig, run, ledger, args, issued_at FROM commands INDEXED BY commands_that_name
		WHERE kind = 'run.assign' AND (instr(args, '"git_access"') > 0 OR instr(args, '"mcp_servers"') > 0)
		AND status IN ('pending', 'applied') ORDER BY number`)
	if err != nil {
		return nil, fmt.Errorf("reading the assignments that name a Git access or MCP servers: %w", err)
	}
	all := make([]Naming, len(rows))
	for i, r := range rows {
		at, err := unstamp(r.IssuedAt)
		if err != nil {
			return nil, fmt.Errorf("reading the assignment of run %s of rig %s: %w", r.Run, r.Rig, err)
		}
		all[i] = Naming{Rig: r.Rig, Run: r.Run, Ledger: r.Ledger, Args: []byte(r.Args), IssuedAt: at}
	}
	return all, nil
}

// ConfigCounts is what a rig's supervisor says it took of its config.
type ConfigCounts struct {
	Rig            string
	Taken, Refused uint64
}

// ConfigCounts gives, by name, what the supervisors say they took and refused
// of their config.
func (s *Store) ConfigCounts(ctx context.Context) (all []ConfigCounts, err error) {
	err = s.Read().SelectContext(ctx, &all, `SELECT name AS rig, json_extract(figures, '$.config.taken') AS taken,
		json_extract(figures, '$.config.refused') AS refused FROM rigs
		WHERE retired_at IS NULL AND json_extract(figures, '$.config.taken') IS NOT NULL ORDER BY name`)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what the rigs took of their config: %w", err)
	}
	return all, nil
}
