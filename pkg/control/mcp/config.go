package mcp

import (
	"context"

	"thermite/pkg/control/service"
)

// configTools are the tools that read what the rigs' config is made of. None
// sets any of it: a secret goes with that, and a model would read it.
func (m *Server) configTools(b *book) {
	add(b, tool{name: "list_model_routes", title: "List the model routes", words: "How models are reached, and which roles of which rigs use which route. No secret is in it."},
		func(ctx context.Context, c service.Caller, _ nothing) (service.ModelRouteList, error) {
			return m.service.ModelRoutes(ctx, c)
		})
	add(b, tool{name: "list_mcp_servers", title: "List the MCP servers", words: "The MCP servers that a run's agents may be given, by name. No sign-in is in it."},
		func(ctx context.Context, c service.Caller, _ nothing) (service.MCPServerList, error) {
			return m.service.MCPServers(ctx, c)
		})
	add(b, tool{name: "list_git_accesses", title: "List the Git accesses", words: "The sign-ins to Git hosts that a run's kit may be fetched with, by name. No secret is in it."},
		func(ctx context.Context, c service.Caller, _ nothing) (service.GitAccessList, error) {
			return m.service.GitAccesses(ctx, c)
		})
}
