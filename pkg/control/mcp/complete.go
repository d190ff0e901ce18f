package mcp

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"thermite/pkg/control/service"
)

// maxCompletions is how many ways to go on are told, which the protocol
// bounds.
const maxCompletions = 100

// complete says how a part of a resource's address may go on.
func (m *Server) complete(ctx context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	var known map[string]string
	if r.Params.Context != nil {
		known = r.Params.Context.Arguments
	}
	names, err := m.names(ctx, callOf(ctx), r.Params.Argument.Name, known)
	if err != nil {
		return nil, m.resourceError(callOf(ctx), "", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, r.Params.Argument.Value) })
	slices.Sort(names)
	names = slices.Compact(names)
	all := len(names)
	names = names[:min(all, maxCompletions)]
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: append([]string{}, names...), Total: all, HasMore: all > len(names)}}, nil
}

// names are those that a part of an address may be.
func (m *Server) names(ctx context.Context, c *call, part string, known map[string]string) (names []string, err error) {
	switch part {
	case "kit":
		list, err := m.service.Kits(ctx, c.caller)
		for _, k := range list.Kits {
			names = append(names, k.Name)
		}
		return names, err
	case "rig":
		list, err := m.service.Rigs(ctx, c.caller, service.PageQuery{Limit: service.MaxPage})
		for _, r := range list.Rigs {
			names = append(names, r.Name)
		}
		return names, err
	case "run":
		list, err := m.service.Runs(ctx, c.caller, service.RunsQuery{PageQuery: service.PageQuery{Limit: service.MaxPage}, Rig: known["rig"]})
		for _, r := range list.Runs {
			names = append(names, r.Run)
		}
		return names, err
	}
	return nil, nil
}
