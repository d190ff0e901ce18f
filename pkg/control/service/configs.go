package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thermite/pkg/control/rigconfig"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Configs are what the rigs' config is made of. rigconfig.Configs are.
type Configs interface {
	SetModelRoute(ctx context.Context, by rigconfig.By, r rigconfig.RouteChange) error
	SetMCPServer(ctx context.Context, by rigconfig.By, s rigconfig.ServerChange) error
	SetGitAccess(ctx context.Context, by rigconfig.By, a rigconfig.AccessChange) error
	RemoveModelRoute(ctx context.Context, by rigconfig.By, name string) error
	RemoveMCPServer(ctx context.Context, by rigconfig.By, name string) error
	RemoveGitAccess(ctx context.Context, by rigconfig.By, name string) error
	// Changed has them looked at soon.
	Changed()
}

func (c Caller) configBy() rigconfig.By { return rigconfig.By{Actor: c.actor(), Source: c.Source} }

// mostConfigRigs is how many rigs' counts the bus's state has.
const mostConfigRigs = 100

// configState gives what control wrote of the rigs' config, and what the rigs
// say they took.
func (s *Service) configState(ctx context.Context) (ConfigState, error) {
	state := s.config.Bus.Config()
	state.Rigs = []RigConfigCount{}
	if state.Keys == nil {
		state.Keys = []ConfigKeyState{}
	}
	counts, err := s.config.Store.ConfigCounts(ctx)
	if err != nil {
		return state, err
	}
	slices.SortStableFunc(counts, func(a, b store.ConfigCounts) int {
		if (a.Refused > 0) == (b.Refused > 0) {
			return 0
		}
		return cmp.Compare(b.Refused, a.Refused)
	})
	for i, n := range counts {
		state.Taken, state.Refused = state.Taken+n.Taken, state.Refused+n.Refused
		if i < mostConfigRigs {
			state.Rigs = append(state.Rigs, RigConfigCount{Rig: n.Rig, Taken: n.Taken, Refused: n.Refused})
		}
	}
	return state, nil
}

// configError says what was wrong with a change of the rigs' config.
func configError(what, name string, err error) error {
	switch {
	case errors.Is(err, rigconfig.ErrNone):
		return newError(CodeNoConfig, "there is no %s %s", what, name)
	case errors.Is(err, rigs.ErrNoRig):
		return invalid("body.uses", err)
	case errors.Is(err, rigconfig.ErrBad):
		words := strings.TrimPrefix(err.Error(), rigconfig.ErrBad.Error()+": ")
		field, _, _ := strings.Cut(words, " ")
		return &Error{Code: CodeInvalid, Text: words, Fields: []FieldError{{Location: "body." + strings.TrimSuffix(field, ":"), Message: words}}}
	}
	return err
}

// checkConfigName refuses a name that can't be one, before anything is looked
// up by it.
func checkConfigName(what, name string) error {
	if err := wire.CheckName(what, name); err != nil {
		return invalid("path.name", err)
	}
	return nil
}

// payload is the secret as it is kept.
func (s *SignIn) payload() *rigconfig.Payload {
	if s == nil {
		return nil
	}
	p := &rigconfig.Payload{Key: wire.Secret(s.Key)}
	for name, v := range s.Headers {
		if p.Headers == nil {
			p.Headers = map[string]wire.Secret{}
		}
		p.Headers[name] = wire.Secret(v)
	}
	if r := s.Renew; r != nil {
		p.Renew = &rigconfig.Renewal{TokenURL: r.TokenURL, ClientID: r.ClientID, ClientSecret: wire.Secret(r.ClientSecret),
			RefreshToken: wire.Secret(r.RefreshToken), Scope: r.Scope}
	}
	return p
}

// ModelRoutes gives every model route, without the secrets.
func (s *Service) ModelRoutes(ctx context.Context, c Caller) (ModelRouteList, error) {
	list := ModelRouteList{Routes: []ModelRoute{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	rows, err := s.config.Store.ModelRoutes(ctx)
	if err != nil {
		return list, err
	}
	uses, err := s.config.Store.RouteUses(ctx)
	if err != nil {
		return list, err
	}
	for _, r := range rows {
		route := ModelRoute{Name: r.Name, API: r.API, BaseURL: r.BaseURL, Model: r.Model, HasKey: r.HasKey, Headers: r.Headers, Renews: r.Renews,
			Uses: []RouteUse{}, ChangedAt: wire.At(r.ChangedAt)}
		for _, u := range uses {
			if u.Route == r.Name {
				route.Uses = append(route.Uses, RouteUse{Role: u.Role, Rig: u.Rig})
			}
		}
		list.Routes = append(list.Routes, route)
	}
	return list, nil
}

// ModelRoute gives one.
func (s *Service) ModelRoute(ctx context.Context, c Caller, name string) (ModelRoute, error) {
	list, err := s.ModelRoutes(ctx, c)
	return named("model route", name, list.Routes, func(r ModelRoute) string { return r.Name }, err)
}

// SetModelRoute makes the route, or changes it. The rigs that use it have it
// within seconds.
func (s *Service) SetModelRoute(ctx context.Context, c Caller, name string, n NewModelRoute) (ModelRoute, error) {
	if err := c.Check(MayChange); err != nil {
		return ModelRoute{}, err
	}
	if err := checkConfigName("model route", name); err != nil {
		return ModelRoute{}, err
	}
	change := rigconfig.RouteChange{Name: name, API: n.API, BaseURL: n.BaseURL, Model: n.Model, Secret: n.Secret.payload()}
	for _, u := range n.Uses {
		change.Uses = append(change.Uses, store.RouteUse{Rig: u.Rig, Role: u.Role})
	}
	if err := s.config.Configs.SetModelRoute(ctx, c.configBy(), change); err != nil {
		return ModelRoute{}, configError("model route", name, err)
	}
	return s.ModelRoute(ctx, c, name)
}

// RemoveModelRoute removes the route.
func (s *Service) RemoveModelRoute(ctx context.Context, c Caller, name string) error {
	return s.removeConfig(ctx, c, "model route", name, s.config.Configs.RemoveModelRoute)
}

func (s *Service) removeConfig(ctx context.Context, c Caller, what, name string, remove func(context.Context, rigconfig.By, string) error) error {
	if err := c.Check(MayChange); err != nil {
		return err
	}
	if err := checkConfigName(what, name); err != nil {
		return err
	}
	if err := remove(ctx, c.configBy(), name); err != nil {
		return configError(what, name, err)
	}
	return nil
}

// named gives the one of that name.
func named[T any](what, name string, all []T, nameOf func(T) string, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	if i := slices.IndexFunc(all, func(t T) bool { return nameOf(t) == name }); i >= 0 {
		return all[i], nil
	}
	return none, newError(CodeNoConfig, "there is no %s %s", what, clipName(name))
}

// clipName keeps a name that is none short in words.
func clipName(name string) string {
	const most = 40
	if len(name) <= most {
		return name
	}
	return fmt.Sprintf("%s…", strings.ToValidUTF8(name[:most], ""))
}

// MCPServers gives every MCP server, without the sign-ins.
func (s *Service) MCPServers(ctx context.Context, c Caller) (MCPServerList, error) {
	list := MCPServerList{Servers: []MCPServer{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	rows, err := s.config.Store.MCPServers(ctx)
	for _, m := range rows {
		list.Servers = append(list.Servers, MCPServer{Name: m.Name, URL: m.URL, Headers: m.Headers, Renews: m.Renews, ChangedAt: wire.At(m.ChangedAt)})
	}
	return list, err
}

// MCPServer gives one.
func (s *Service) MCPServer(ctx context.Context, c Caller, name string) (MCPServer, error) {
	list, err := s.MCPServers(ctx, c)
	return named("MCP server", name, list.Servers, func(m MCPServer) string { return m.Name }, err)
}

// SetMCPServer makes the server, or changes it.
func (s *Service) SetMCPServer(ctx context.Context, c Caller, name string, n NewMCPServer) (MCPServer, error) {
	if err := c.Check(MayChange); err != nil {
		return MCPServer{}, err
	}
	if err := checkConfigName("MCP server", name); err != nil {
		return MCPServer{}, err
	}
	if err := s.config.Configs.SetMCPServer(ctx, c.configBy(), rigconfig.ServerChange{Name: name, URL: n.URL, Secret: n.Secret.payload()}); err != nil {
		return MCPServer{}, configError("MCP server", name, err)
	}
	return s.MCPServer(ctx, c, name)
}

// RemoveMCPServer removes the server.
func (s *Service) RemoveMCPServer(ctx context.Context, c Caller, name string) error {
	return s.removeConfig(ctx, c, "MCP server", name, s.config.Configs.RemoveMCPServer)
}

// GitAccesses gives every Git access, without the secrets.
func (s *Service) GitAccesses(ctx context.Context, c Caller) (GitAccessList, error) {
	list := GitAccessList{Accesses: []GitAccess{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	rows, err := s.config.Store.GitAccesses(ctx)
	for _, a := range rows {
		list.Accesses = append(list.Accesses, GitAccess{Name: a.Name, Host: a.Host, Username: a.Username, ChangedAt: wire.At(a.ChangedAt)})
	}
	return list, err
}

// GitAccess gives one.
func (s *Service) GitAccess(ctx context.Context, c Caller, name string) (GitAccess, error) {
	list, err := s.GitAccesses(ctx, c)
	return named("Git access", name, list.Accesses, func(a GitAccess) string { return a.Name }, err)
}

// SetGitAccess makes the access, or changes it.
func (s *Service) SetGitAccess(ctx context.Context, c Caller, name string, n NewGitAccess) (GitAccess, error) {
	if err := c.Check(MayChange); err != nil {
		return GitAccess{}, err
	}
	if err := checkConfigName("Git access", name); err != nil {
		return GitAccess{}, err
	}
	change := rigconfig.AccessChange{Name: name, Host: n.Host, Username: n.Username, Secret: wire.Secret(n.Secret)}
	if err := s.config.Configs.SetGitAccess(ctx, c.configBy(), change); err != nil {
		return GitAccess{}, configError("Git access", name, err)
	}
	return s.GitAccess(ctx, c, name)
}

// RemoveGitAccess removes the access.
func (s *Service) RemoveGitAccess(ctx context.Context, c Caller, name string) error {
	return s.removeConfig(ctx, c, "Git access", name, s.config.Configs.RemoveGitAccess)
}

// checkNamed says whether control has what a new run names.
func (s *Service) checkNamed(ctx context.Context, c Caller, n NewRun) error {
	if n.GitAccess != "" {
		if _, err := s.GitAccess(ctx, c, n.GitAccess); err != nil {
			return namedError("body.git_access", err)
		}
	}
	for i, name := range n.MCPServers {
		if _, err := s.MCPServer(ctx, c, name); err != nil {
			return namedError(fmt.Sprintf("body.mcp_servers[%d]", i), err)
		}
	}
	return nil
}

func namedError(where string, err error) error {
	if e := ErrorOf(err); e.Code == CodeNoConfig {
		return invalid(where, e)
	}
	return err
}
