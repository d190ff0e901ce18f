package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"thermite/pkg/control/service"
)

// Enter gives the test the protocol's server of the owner, to enter more in.
func (m *Server) Enter(more func(*sdk.Server)) { more(m.servers[service.RoleOwner]) }
