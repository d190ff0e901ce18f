package faults

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/caarlos0/env/v11"

	"thermite/pkg/supervisor"
)

// roleVariable makes the test's own binary a supervisor whose waits are
// shorter than the seed's: one that was killed while control was away would
// else register half a minute later, and the test takes its time 200 times.
const roleVariable = "THERMITE_FAULTS_ROLE"

// superviseInstead runs a supervisor instead of the tests, if told to.
func superviseInstead() {
	if os.Getenv(roleVariable) != "supervisor" {
		return
	}
	var cfg supervisor.Config
	err := env.Parse(&cfg)
	if err == nil {
		cfg.Build, cfg.Now, cfg.Rand, cfg.Log = "test", time.Now, rand.Reader, slog.New(slog.NewTextHandler(os.Stderr, nil))
		cfg.Times = supervisor.Times{Register: 300 * time.Millisecond, Call: 5 * time.Second, Ask: 3 * time.Second,
			Publish: 3 * time.Second, Reconnect: 100 * time.Millisecond}
		var s *supervisor.Supervisor
		if s, err = supervisor.New(context.Background(), cfg); err == nil {
			err = s.Run(context.Background())
		}
	}
	fmt.Fprintln(os.Stderr, "supervisor:", err)
	os.Exit(1)
}
