package client

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

// ModelRoutes gives every model route, without the secrets.
func (c *Client) ModelRoutes(ctx context.Context) (service.ModelRouteList, error) {
	return get[service.ModelRouteList](ctx, c, nil, "model-routes")
}

// SetModelRoute makes a model route, or changes it.
func (c *Client) SetModelRoute(ctx context.Context, name string, n service.NewModelRoute) (service.ModelRoute, error) {
	return put[service.ModelRoute](ctx, c, n, "model-routes", name)
}

// MCPServers gives every MCP server, without the sign-ins.
func (c *Client) MCPServers(ctx context.Context) (service.MCPServerList, error) {
	return get[service.MCPServerList](ctx, c, nil, "mcp-servers")
}

// SetMCPServer makes an MCP server, or changes it.
func (c *Client) SetMCPServer(ctx context.Context, name string, n service.NewMCPServer) (service.MCPServer, error) {
	return put[service.MCPServer](ctx, c, n, "mcp-servers", name)
}

// GitAccesses gives every Git access, without the secrets.
func (c *Client) GitAccesses(ctx context.Context) (service.GitAccessList, error) {
	return get[service.GitAccessList](ctx, c, nil, "git-accesses")
}

// SetGitAccess makes a Git access, or changes it.
func (c *Client) SetGitAccess(ctx context.Context, name string, n service.NewGitAccess) (service.GitAccess, error) {
	return put[service.GitAccess](ctx, c, n, "git-accesses", name)
}

// RemoveConfig removes the one of that name: of is model-routes, mcp-servers or
// git-accesses.
func (c *Client) RemoveConfig(ctx context.Context, of, name string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: []string{of, name}}, nil)
}

func put[T any](ctx context.Context, c *Client, body any, path ...string) (T, error) {
	var out T
	err := c.do(ctx, call{method: http.MethodPut, path: path, body: body}, &out)
	return out, err
}
