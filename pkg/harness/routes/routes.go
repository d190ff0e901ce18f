// Package routes is the harness's part of the rig's config: the model routes
// and MCP servers that its supervisor hands it. It keeps them in memory only,
// as they hold keys: after a start it has none until the supervisor hands them
// again, and its agents wait for them.
package routes

import (
	"fmt"
	"slices"
	"sync"

	"thermite/pkg/wire"
)

// Routes are what the harness was handed.
type Routes struct {
	mu      sync.Mutex
	held    map[string]held
	changed chan struct{}
}

type held struct {
	revision string
	value    wire.ConfigValue
}

// New holds none yet.
func New() *Routes { return &Routes{held: map[string]held{}, changed: make(chan struct{})} }

// Set takes the key's value.
func (r *Routes) Set(key, revision string, v wire.ConfigValue) error {
	if !slices.Contains(wire.HarnessConfigKeys, key) || v.ConfigKey() != key {
		return fmt.Errorf("the harness takes no %s: %w", key, wire.ErrNoConfig)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if has, ok := r.held[key]; ok && has.revision == revision && revision != "" {
		return nil
	}
	r.held[key] = held{revision, v}
	close(r.changed)
	r.changed = make(chan struct{})
	return nil
}

// Held says which value of the key it has.
func (r *Routes) Held(key string) wire.ConfigHeld {
	r.mu.Lock()
	defer r.mu.Unlock()
	has, ok := r.held[key]
	return wire.ConfigHeld{Key: key, Held: ok, Revision: has.revision}
}

// ModelRoute gives the routes of the rig's agents and planner; known is false
// until the supervisor handed them.
func (r *Routes) ModelRoute() (v wire.ModelRouteConfig, known bool) {
	return get[wire.ModelRouteConfig](r, wire.ConfigModelRoute)
}

// MCPServers gives the MCP servers that the rig's runs name; known is false
// until the supervisor handed them.
func (r *Routes) MCPServers() (v wire.MCPServersConfig, known bool) {
	return get[wire.MCPServersConfig](r, wire.ConfigMCPServers)
}

// Changed gives what is closed at the next change.
func (r *Routes) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

func get[V wire.ConfigValue](r *Routes, key string) (v V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, known = r.held[key].value.(V)
	return v, known
}
