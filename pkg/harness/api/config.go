package api

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"thermite/pkg/wire"
)

// Routes is what the supervisor hands the harness of the rig's config.
// routes.Routes is one.
type Routes interface {
	Set(key, revision string, v wire.ConfigValue) error
	Held(key string) wire.ConfigHeld
}

// configKey is the key of the path, if the harness takes one of that name.
func configKey(r *http.Request) (string, error) {
	key := strings.TrimPrefix(r.URL.Path, wire.HarnessConfigPath)
	if !slices.Contains(wire.HarnessConfigKeys, key) {
		return "", &wire.HarnessProblem{Status: http.StatusNotFound, Code: wire.CodeNotFound,
			Detail: fmt.Sprintf("the harness takes no config of the key %s: only %s", clip(key), strings.Join(wire.HarnessConfigKeys, " and "))}
	}
	return key, nil
}

// getConfig: which value of a key the harness has, never the value.
func (s *Server) getConfig(r *http.Request) ([]byte, error) {
	key, err := s.configQuery(r)
	if err != nil {
		return nil, err
	}
	return wire.EncodeConfigHeld(s.cfg.Routes.Held(key))
}

// putConfig: a value, which stays in memory.
func (s *Server) putConfig(r *http.Request) ([]byte, error) {
	key, err := s.configQuery(r)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, wire.MaxConfigBytes+1))
	if err != nil {
		return nil, badBody(fmt.Errorf("reading the body: %w", err))
	}
	revision, value, err := wire.DecodeConfigHand(key, b)
	if err != nil {
		return nil, badBody(err)
	}
	if err := s.cfg.Routes.Set(key, revision, value); err != nil {
		return nil, badBody(err)
	}
	s.cfg.Log.Info("the supervisor handed the rig's config", "key", key, "revision", revision)
	return wire.EncodeConfigHeld(s.cfg.Routes.Held(key))
}

func (s *Server) configQuery(r *http.Request) (string, error) {
	if _, err := parseQuery(r.URL); err != nil {
		return "", err
	}
	return configKey(r)
}
