package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

// NamePath is a name in a path.
type NamePath struct {
	Name string `path:"name" maxLength:"40" doc:"Its name: 1 to 40 of a-z, 0-9 and -, not starting with -" example:"main"`
}

// inForce is said of each change of the rigs' config.
const inForce = " The rigs that it is for have it within five seconds, sealed to each: no secret is on the message bus in the clear, nor shown again."

// configRoutes are those of what the rigs' config is made of.
func (a *API) configRoutes() {
	type named[T any] struct {
		NamePath
		Body T
	}
	list := func(path, id, summary, more string) route {
		return route{method: http.MethodGet, path: path, id: id, tag: tagConfig, may: service.MayRead, summary: summary, more: more}
	}
	put := func(path, id, summary, more string) route {
		return route{method: http.MethodPut, path: path, id: id, tag: tagConfig, may: service.MayChange, reads: true, summary: summary, more: more + inForce}
	}
	remove := func(path, id, summary, more string) route {
		return route{method: http.MethodDelete, path: path, id: id, tag: tagConfig, may: service.MayChange, noContent: true, summary: summary, more: more}
	}
	const routes, servers, accesses = "/v1/model-routes", "/v1/mcp-servers", "/v1/git-accesses"

	add(a, list(routes, "list-model-routes", "List the model routes", "How models are reached, and which roles of which rigs use which route. No secret is in it."),
		func(ctx context.Context, c service.Caller, _ *nothing) (*answerOf[service.ModelRouteList], error) {
			return answerWith(a.service.ModelRoutes(ctx, c))
		})
	add(a, list(routes+"/{name}", "get-model-route", "View a model route", "It, without its secret."),
		func(ctx context.Context, c service.Caller, in *NamePath) (*answerOf[service.ModelRoute], error) {
			return answerWith(a.service.ModelRoute(ctx, c, in.Name))
		})
	add(a, put(routes+"/{name}", "set-model-route", "Set a model route", "It is made, or changed to what the body says; without secret the key there is stays."),
		func(ctx context.Context, c service.Caller, in *named[service.NewModelRoute]) (*answerOf[service.ModelRoute], error) {
			return answerWith(a.service.SetModelRoute(ctx, c, in.Name, in.Body))
		})
	add(a, remove(routes+"/{name}", "remove-model-route", "Remove a model route", "The roles that used it have the route of every rig, or none."),
		func(ctx context.Context, c service.Caller, in *NamePath) (*nothing, error) {
			return &nothing{}, a.service.RemoveModelRoute(ctx, c, in.Name)
		})

	add(a, list(servers, "list-mcp-servers", "List the MCP servers", "Those that a run may name. No sign-in is in it."),
		func(ctx context.Context, c service.Caller, _ *nothing) (*answerOf[service.MCPServerList], error) {
			return answerWith(a.service.MCPServers(ctx, c))
		})
	add(a, list(servers+"/{name}", "get-mcp-server", "View an MCP server", "It, without its sign-in."),
		func(ctx context.Context, c service.Caller, in *NamePath) (*answerOf[service.MCPServer], error) {
			return answerWith(a.service.MCPServer(ctx, c, in.Name))
		})
	add(a, put(servers+"/{name}", "set-mcp-server", "Set an MCP server", "It is made, or changed to what the body says; without secret the sign-in there is stays."),
		func(ctx context.Context, c service.Caller, in *named[service.NewMCPServer]) (*answerOf[service.MCPServer], error) {
			return answerWith(a.service.SetMCPServer(ctx, c, in.Name, in.Body))
		})
	add(a, remove(servers+"/{name}", "remove-mcp-server", "Remove an MCP server", "A run that names it is told that control can't give it."),
		func(ctx context.Context, c service.Caller, in *NamePath) (*nothing, error) {
			return &nothing{}, a.service.RemoveMCPServer(ctx, c, in.Name)
		})

	add(a, list(accesses, "list-git-accesses", "List the Git accesses", "Sign-ins to Git hosts, which kits are staged with. No secret is in it."),
		func(ctx context.Context, c service.Caller, _ *nothing) (*answerOf[service.GitAccessList], error) {
			return answerWith(a.service.GitAccesses(ctx, c))
		})
	add(a, list(accesses+"/{name}", "get-git-access", "View a Git access", "It, without its secret."),
		func(ctx context.Context, c service.Caller, in *NamePath) (*answerOf[service.GitAccess], error) {
			return answerWith(a.service.GitAccess(ctx, c, in.Name))
		})
	add(a, put(accesses+"/{name}", "set-git-access", "Set a Git access", "It is made, or changed to what the body says. A rig has it only while a run assigned to it names it."),
		func(ctx context.Context, c service.Caller, in *named[service.NewGitAccess]) (*answerOf[service.GitAccess], error) {
			return answerWith(a.service.SetGitAccess(ctx, c, in.Name, in.Body))
		})
	add(a, remove(accesses+"/{name}", "remove-git-access", "Remove a Git access", "Every rig that was given it loses it."),
		func(ctx context.Context, c service.Caller, in *NamePath) (*nothing, error) {
			return &nothing{}, a.service.RemoveGitAccess(ctx, c, in.Name)
		})
}
