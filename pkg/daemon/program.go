// Package daemon is what Thermite's long-running programs do alike: their
// settings come from the environment and then from flags, they stop at SIGINT
// and SIGTERM, they end with the same codes, and they tell systemd how they
// are. What a program does is its own.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The codes that a program ends with.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUse    = 2
	// ExitConfig is ExitUse where systemd started the program, which shows it
	// as a configuration error and, by the units, does not try again. A 2 it
	// could not tell from a panic.
	ExitConfig = 78
)

// A UseError is a wrong use of the command line or the environment.
type UseError struct{ Err error }

// Error implements error.
func (e UseError) Error() string { return e.Err.Error() }

// Unwrap gives what is wrong.
func (e UseError) Unwrap() error { return e.Err }

// Program is one program.
type Program struct {
	Name, Short, Version string
	// Settings points to the struct that the environment is read into, by its
	// env tags.
	Settings any
	// Flags adds a flag for each setting. The defaults are what the settings
	// are by then.
	Flags func(*pflag.FlagSet)
	// Level is the log's level; nil is slog.LevelInfo. It is asked when the
	// settings are known.
	Level func() slog.Level
	// Run works until its context ends.
	Run func(ctx context.Context, log *slog.Logger) error
}

// Main runs the program, and gives the code to end with.
func (p Program) Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := p.Command(os.Stderr).ExecuteContext(ctx)
	if err == nil {
		return ExitDone
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n%s", p.Name, err, p.next(err))
	switch use := (UseError{}); {
	case !errors.As(err, &use):
		return ExitFailed
	case os.Getenv("NOTIFY_SOCKET") != "":
		return ExitConfig
	}
	return ExitUse
}

// next says what to do about an error, as a line; "" where it says so itself.
func (p Program) next(err error) string {
	switch use := (UseError{}); {
	case errors.As(err, &use):
		return p.Name + " --help names each setting's flag and variable\n"
	case errors.Is(err, fs.ErrPermission):
		return "Run it as a user who may, or name folders of your own: " + p.Name + " --help\n"
	default:
		return ""
	}
}

// Command is the program's command line. Its log goes to logs.
func (p Program) Command(logs io.Writer) *cobra.Command {
	fromEnv := env.Parse(p.Settings)
	cmd := &cobra.Command{
		Use: p.Name, Short: p.Short, Version: p.Version, SilenceUsage: true, SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return UseError{fmt.Errorf("it takes no arguments, and got %q", args)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fromEnv != nil {
				return UseError{fmt.Errorf("reading the environment: %w", fromEnv)}
			}
			level := slog.LevelInfo
			if p.Level != nil {
				level = p.Level()
			}
			return p.Run(cmd.Context(), slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level})))
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return UseError{err} })
	p.Flags(cmd.Flags())
	return cmd
}
