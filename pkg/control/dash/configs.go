package dash

import (
	"net/http"
	"strings"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// The pages of what the rigs' config is made of. A secret is typed, and never
// shown again, not even after an error.

type modelsPage struct {
	frame
	Tab     string
	Routes  []service.ModelRoute
	APIs    []string
	Roles   []string
	Typed   routeForm
	Problem *problem
}

// routeForm is the form of a model route, as it was typed, without its secret.
type routeForm struct{ Name, API, URL, Model, Uses string }

// models shows the model routes, and the form that sets one.
func (d *Dash) models(v *visit) error {
	return v.showModels(routeForm{API: wire.APIOpenAIChat, Uses: wire.RoleAgents}, nil, http.StatusOK)
}

func (v *visit) showModels(typed routeForm, p *problem, status int) error {
	f, err := v.frame("Settings: models", "settings")
	if err != nil {
		return err
	}
	list, err := v.d.service.ModelRoutes(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	return v.render("settings-models", status, modelsPage{frame: f, Tab: "models", Routes: list.Routes, APIs: wire.ModelAPIs, Roles: wire.ModelRoles, Typed: typed, Problem: p})
}

// setModel makes a model route, or changes it.
func (d *Dash) setModel(v *visit) error {
	typed := routeForm{Name: v.word("name"), API: v.field("api"), URL: v.word("url"), Model: v.word("model"), Uses: v.word("uses")}
	n := service.NewModelRoute{API: typed.API, BaseURL: typed.URL, Model: typed.Model, Secret: v.signIn(), Uses: []service.RouteUse{}}
	for _, use := range strings.FieldsFunc(typed.Uses, func(r rune) bool { return r == ',' || r == ' ' }) {
		role, rig, _ := strings.Cut(use, "@")
		n.Uses = append(n.Uses, service.RouteUse{Role: role, Rig: rig})
	}
	if _, err := d.service.SetModelRoute(v.r.Context(), v.caller, typed.Name, n); err != nil {
		p, status := v.problemOf(err)
		return v.showModels(typed, p, status)
	}
	return v.goTo("/settings/models")
}

func (d *Dash) removeModel(v *visit) error {
	if err := d.service.RemoveModelRoute(v.r.Context(), v.caller, v.r.PathValue("name")); err != nil {
		p, status := v.problemOf(err)
		return v.showModels(routeForm{API: wire.APIOpenAIChat}, p, status)
	}
	return v.goTo("/settings/models")
}

// word gives what was typed, without the space around it.
func (v *visit) word(name string) string { return strings.TrimSpace(v.field(name)) }

// signIn is the secret that was typed; nil keeps the one there is.
func (v *visit) signIn() *service.SignIn {
	switch key := v.word("secret"); {
	case v.field("no_secret") != "":
		return &service.SignIn{}
	case key != "":
		return &service.SignIn{Key: key}
	}
	return nil
}

type mcpServersPage struct {
	frame
	Tab     string
	Servers []service.MCPServer
	Name    string
	URL     string
	Problem *problem
}

// mcpServers shows the MCP servers, and the form that sets one.
func (d *Dash) mcpServers(v *visit) error {
	return v.showMCPServers(mcpServersPage{}, http.StatusOK)
}

func (v *visit) showMCPServers(page mcpServersPage, status int) error {
	f, err := v.frame("Settings: MCP servers", "settings")
	if err != nil {
		return err
	}
	list, err := v.d.service.MCPServers(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	page.frame, page.Tab, page.Servers = f, "mcp", list.Servers
	return v.render("settings-mcp", status, page)
}

func (d *Dash) setMCPServer(v *visit) error {
	page := mcpServersPage{Name: v.word("name"), URL: v.word("url")}
	if _, err := d.service.SetMCPServer(v.r.Context(), v.caller, page.Name, service.NewMCPServer{URL: page.URL, Secret: v.signIn()}); err != nil {
		var status int
		page.Problem, status = v.problemOf(err)
		return v.showMCPServers(page, status)
	}
	return v.goTo("/settings/mcp-servers")
}

func (d *Dash) removeMCPServer(v *visit) error {
	if err := d.service.RemoveMCPServer(v.r.Context(), v.caller, v.r.PathValue("name")); err != nil {
		p, status := v.problemOf(err)
		return v.showMCPServers(mcpServersPage{Problem: p}, status)
	}
	return v.goTo("/settings/mcp-servers")
}

type gitAccessesPage struct {
	frame
	Tab                  string
	Accesses             []service.GitAccess
	Name, Host, Username string
	Problem              *problem
}

// gitAccesses shows the Git accesses, and the form that sets one.
func (d *Dash) gitAccesses(v *visit) error {
	return v.showGitAccesses(gitAccessesPage{}, http.StatusOK)
}

func (v *visit) showGitAccesses(page gitAccessesPage, status int) error {
	f, err := v.frame("Settings: Git accesses", "settings")
	if err != nil {
		return err
	}
	list, err := v.d.service.GitAccesses(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	page.frame, page.Tab, page.Accesses = f, "git", list.Accesses
	return v.render("settings-git", status, page)
}

func (d *Dash) setGitAccess(v *visit) error {
	page := gitAccessesPage{Name: v.word("name"), Host: v.word("host"), Username: v.word("username")}
	n := service.NewGitAccess{Host: page.Host, Username: page.Username, Secret: v.word("secret")}
	if _, err := d.service.SetGitAccess(v.r.Context(), v.caller, page.Name, n); err != nil {
		var status int
		page.Problem, status = v.problemOf(err)
		return v.showGitAccesses(page, status)
	}
	return v.goTo("/settings/git-accesses")
}

func (d *Dash) removeGitAccess(v *visit) error {
	if err := d.service.RemoveGitAccess(v.r.Context(), v.caller, v.r.PathValue("name")); err != nil {
		p, status := v.problemOf(err)
		return v.showGitAccesses(gitAccessesPage{Problem: p}, status)
	}
	return v.goTo("/settings/git-accesses")
}
