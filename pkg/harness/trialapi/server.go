package trialapi

import (
	"log/slog"
	"sync"
)

// Config is what the API works with.
type Config struct {
	Trials Trials
	Files  Files
	Log    *slog.Logger
}

// Server is the API.
type Server struct {
	cfg Config

	mu       sync.Mutex
	admitted []*Admitted
}

// New makes the API.
func New(cfg Config) *Server { return &Server{cfg: cfg} }
