package main

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"

	"thermite/pkg/bus"
)

// config is the command's settings. A setting's env tag is its name in the
// environment.
type config struct {
	// Dir is the folder that the server reads: control writes the users and
	// the certificate there.
	Dir string `env:"THERMITE_NATS_DIR" envDefault:"/var/lib/thermite-nats"`
	// StoreDir holds JetStream's store; empty: jetstream in Dir.
	StoreDir string `env:"THERMITE_NATS_STORE"`
	// Host is the address to listen on.
	Host string `env:"THERMITE_NATS_HOST" envDefault:"0.0.0.0"`
	// Port is the port to listen on.
	Port int `env:"THERMITE_NATS_PORT" envDefault:"4222"`
	// Name is the server's name in its monitoring.
	Name string `env:"THERMITE_NATS_NAME" envDefault:"thermite"`
	// MaxStore bounds JetStream's store. It can grow later, not shrink.
	MaxStore size `env:"THERMITE_NATS_MAX_STORE" envDefault:"64GiB"`
	// Debug logs all that the server says.
	Debug bool `env:"THERMITE_NATS_DEBUG" envDefault:"false"`
}

func (c config) settings() bus.Settings {
	return bus.Settings{Dir: c.Dir, StoreDir: c.StoreDir, Host: c.Host, Port: c.Port, ServerName: c.Name, MaxStore: int64(c.MaxStore)}
}

// size is a number of bytes, written as a person does: 500MB, 64GiB.
type size int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *size) UnmarshalText(b []byte) error {
	n, err := humanize.ParseBytes(string(b))
	if err != nil || n == 0 || n > math.MaxInt64 {
		return fmt.Errorf("%q is no size such as 64GiB", b)
	}
	*s = size(n)
	return nil
}

// Set implements pflag.Value.
func (s *size) Set(text string) error { return s.UnmarshalText([]byte(text)) }

// String implements pflag.Value.
func (s *size) String() string { return humanize.IBytes(uint64(*s)) }

// Type implements pflag.Value.
func (s *size) Type() string { return "size" }
