package rigconfig

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"thermite/pkg/control/secrets"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// inputs are all that the values are made of. Two that are equal make equal
// values.
type inputs struct {
	Rigs     []store.ConfigRig
	Routes   []store.ModelRoute
	Uses     []store.RouteUse
	Servers  []store.MCPServer
	Accesses []store.GitAccess
	// Live are the assignments that last and name something.
	Live []naming
}

// naming is what a rig's assignment names.
type naming struct {
	Rig, Run   string
	GitAccess  string
	MCPServers []string
}

// read reads them from the store.
func (c *Configs) read(ctx context.Context) (*inputs, error) {
	in := &inputs{}
	var err error
	if in.Rigs, err = c.Store.ConfigRigs(ctx); err != nil {
		return nil, err
	}
	if in.Routes, err = c.Store.ModelRoutes(ctx); err != nil {
		return nil, err
	}
	if in.Uses, err = c.Store.RouteUses(ctx); err != nil {
		return nil, err
	}
	if in.Servers, err = c.Store.MCPServers(ctx); err != nil {
		return nil, err
	}
	if in.Accesses, err = c.Store.GitAccesses(ctx); err != nil {
		return nil, err
	}
	in.Live, err = c.live(ctx)
	return in, err
}

// live gives the assignments that last: of a run that is not over, in the
// ledger that the rig has.
func (c *Configs) live(ctx context.Context) ([]naming, error) {
	all, err := c.Store.Namings(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]views.Rig{}
	var live []naming
	for _, n := range all {
		v, ok := seen[n.Rig]
		if !ok {
			if v, err = c.Views.Rig(ctx, n.Rig); err != nil {
				return nil, err
			}
			seen[n.Rig] = v
		}
		if !lasts(n, v) {
			continue
		}
		var a wire.RunAssign
		if err := json.Unmarshal(n.Args, &a); err != nil {
			return nil, fmt.Errorf("reading the assignment of run %s of rig %s: %w", n.Run, n.Rig, err)
		}
		live = append(live, naming{Rig: n.Rig, Run: n.Run, GitAccess: a.GitAccess, MCPServers: a.MCPServers})
	}
	return live, nil
}

// lasts says whether an assignment that was not refused lasts: it does until
// its run is over, also before the rig tells of the run.
func lasts(n store.Naming, v views.Rig) bool {
	if n.Ledger != "" && v.Ledger != "" && n.Ledger != v.Ledger {
		return false // the rig began a new ledger, which has none of its runs
	}
	i := slices.IndexFunc(v.Runs, func(r views.Run) bool { return r.Run == n.Run })
	return i < 0 || v.Runs[i].State != views.RunEnded
}

// maker makes the values of one look. Each secret is opened once.
type maker struct {
	in       *inputs
	routes   map[string]made[wire.ModelRoute]
	servers  map[string]made[wire.MCPServer]
	accesses map[string]made[wire.GitAccess]
	uses     map[store.RouteUse]string
	naming   map[string][]naming
	out      []left
}

// left is what a value is written without, and why.
type left struct {
	what string
	err  error
}

// made is a part of a value, or why it can't be made.
type made[T any] struct {
	is  T
	err error
}

func newMaker(key *secrets.Key, in *inputs) *maker {
	m := &maker{in: in, routes: map[string]made[wire.ModelRoute]{}, servers: map[string]made[wire.MCPServer]{},
		accesses: map[string]made[wire.GitAccess]{}, uses: map[store.RouteUse]string{}, naming: map[string][]naming{}}
	for _, r := range in.Routes {
		p, err := openPayload(key, kindRoute, r.Name, r.Sealed)
		m.routes[r.Name] = made[wire.ModelRoute]{wire.ModelRoute{Name: r.Name, API: r.API, BaseURL: r.BaseURL, Model: r.Model, Key: p.Key,
			Headers: p.Headers, ExpiresAt: p.ExpiresAt}, err}
	}
	for _, s := range in.Servers {
		p, err := openPayload(key, kindServer, s.Name, s.Sealed)
		m.servers[s.Name] = made[wire.MCPServer]{wire.MCPServer{Name: s.Name, URL: s.URL, Headers: p.signIn(), ExpiresAt: p.ExpiresAt}, err}
	}
	for _, a := range in.Accesses {
		p, err := openPayload(key, kindAccess, a.Name, a.Sealed)
		m.accesses[a.Name] = made[wire.GitAccess]{wire.GitAccess{Name: a.Name, Host: a.Host, Username: a.Username, Secret: p.Key}, err}
	}
	for _, u := range in.Uses {
		m.uses[store.RouteUse{Rig: u.Rig, Role: u.Role}] = u.Route
	}
	for _, n := range in.Live {
		m.naming[n.Rig] = append(m.naming[n.Rig], n)
	}
	return m
}

// value makes the rig's value of the key.
func (m *maker) value(rig, key string) (wire.ConfigValue, error) {
	switch key {
	case wire.ConfigModelRoute:
		return m.modelRoute(rig)
	case wire.ConfigAdvisorRoutes:
		return m.advisorRoutes(rig)
	case wire.ConfigMCPServers:
		return m.mcpServers(rig), nil
	default:
		return m.gitAccess(rig), nil
	}
}

// route gives the route of the rig's role; nil when it has none.
func (m *maker) route(rig, role string) (*wire.ModelRoute, error) {
	name, ok := m.uses[store.RouteUse{Rig: rig, Role: role}]
	if !ok {
		name, ok = m.uses[store.RouteUse{Role: role}]
	}
	if !ok {
		return nil, nil
	}
	r := m.routes[name]
	if r.err != nil {
		return nil, r.err
	}
	return &r.is, nil
}

func (m *maker) modelRoute(rig string) (v wire.ModelRouteConfig, err error) {
	if v.Agents, err = m.route(rig, wire.RoleAgents); err != nil {
		return v, err
	}
	v.Planner, err = m.route(rig, wire.RolePlanner)
	return v, err
}

func (m *maker) advisorRoutes(rig string) (v wire.AdvisorRoutesConfig, err error) {
	for _, role := range wire.AdvisorRoles {
		r, err := m.route(rig, role)
		if err != nil {
			return v, err
		}
		if r != nil {
			if v.Routes == nil {
				v.Routes = map[string]wire.ModelRoute{}
			}
			v.Routes[role] = *r
		}
	}
	return v, nil
}

// mcpServers gives the servers that the rig's runs name, by name, and says of
// those that it can't give why.
func (m *maker) mcpServers(rig string) (v wire.MCPServersConfig) {
	runs := map[string][]string{}
	for _, n := range m.naming[rig] {
		for _, name := range n.MCPServers {
			if !slices.Contains(runs[name], n.Run) {
				runs[name] = append(runs[name], n.Run)
			}
		}
	}
	for _, name := range sorted(runs) {
		slices.Sort(runs[name])
		switch s, ok := m.servers[name]; {
		case !ok:
			v.Missing = append(v.Missing, wire.MissingMCPServer{Name: name, Why: "control has no MCP server of that name", Runs: runs[name]})
		case s.err != nil:
			m.leave("MCP server "+name, s.err)
			v.Missing = append(v.Missing, wire.MissingMCPServer{Name: name, Why: "its sign-in does not open in control: its owner must set it again", Runs: runs[name]})
		default:
			s.is.Runs = runs[name]
			v.Servers = append(v.Servers, s.is)
		}
	}
	return v
}

// gitAccess gives the accesses that the rig's assignments name, by name. One
// that can't be opened is left out.
func (m *maker) gitAccess(rig string) (v wire.GitAccessConfig) {
	names := map[string]bool{}
	for _, n := range m.naming[rig] {
		if n.GitAccess != "" {
			names[n.GitAccess] = true
		}
	}
	for _, name := range sorted(names) {
		switch a, ok := m.accesses[name]; {
		case !ok:
			m.leave("Git access "+name, fmt.Errorf("control has none of that name, which an assignment of rig %s names", rig))
		case a.err != nil:
			m.leave("Git access "+name, a.err)
		default:
			v.Accesses = append(v.Accesses, a.is)
		}
	}
	return v
}

func (m *maker) leave(what string, err error) { m.out = append(m.out, left{what, err}) }

// leftOut gives what the values were made without.
func (m *maker) leftOut() []left { return m.out }

func sorted[V any](of map[string]V) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
