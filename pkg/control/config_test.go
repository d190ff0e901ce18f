package control

import (
	"crypto/rand"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func goodConfig() Config {
	return Config{StateDir: "/s", BusDir: "/b", BusURL: "nats://127.0.0.1:4222", Listen: "127.0.0.1:8443", Build: "test",
		Now: time.Now, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)}
}

// Promise: a wrong setting is refused by its field's name, all of them at
// once, and a password in an address is not repeated.
func TestWrongSettingsAreNamed(t *testing.T) {
	if err := goodConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for field, wrong := range map[string]func(*Config){
		"StateDir":       func(c *Config) { c.StateDir = "state" },
		"BusDir":         func(c *Config) { c.BusDir = "" },
		"BusDir:":        func(c *Config) { c.BusDir = "/s/" },
		"BusURL":         func(c *Config) { c.BusURL = "http://127.0.0.1:4222" },
		"BusURL:":        func(c *Config) { c.BusURL = "nats://user:hidden@host:4222" },
		"BusPublicURL":   func(c *Config) { c.BusPublicURL = "host:4222" },
		"PublicURL":      func(c *Config) { c.PublicURL = "https://" },
		"PublicURL:":     func(c *Config) { c.PublicURL = "https://host/?a=b" },
		"Listen":         func(c *Config) { c.Listen = "8443" },
		"Listen:":        func(c *Config) { c.Listen = ":99999" },
		"Plain":          func(c *Config) { c.Plain, c.Listen = true, "0.0.0.0:80" },
		"Build":          func(c *Config) { c.Build = "" },
		"Now, Rand, Log": func(c *Config) { c.Rand = nil },
	} {
		c := goodConfig()
		wrong(&c)
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), "setting "+strings.TrimSuffix(field, ":")+":") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", field, err)
		}
	}
	err := Config{}.Validate()
	for _, field := range []string{"StateDir", "BusDir", "BusURL", "Listen", "Build", "Now, Rand, Log"} {
		if !strings.Contains(err.Error(), "setting "+field+":") {
			t.Errorf("of no settings at all, %s is not said: %v", field, err)
		}
	}
}

// Promise: each setting that a person makes has a THERMITE_ name.
func TestEverySettingHasAName(t *testing.T) {
	given := []string{"Build", "Listener", "Now", "Rand", "Log", "OnState", "OnReady"}
	for field := range reflect.TypeFor[Config]().Fields() {
		name, has := field.Tag.Lookup("env")
		if slices.Contains(given, field.Name) {
			if has {
				t.Errorf("%s is handed in, and has the name %s", field.Name, name)
			}
			continue
		}
		if !strings.HasPrefix(name, "THERMITE_") {
			t.Errorf("%s has the name %q", field.Name, name)
		}
	}
}

// Promise: the certificates name everything that control and the bus are
// reached by, and rigs are told addresses that follow from what is set.
func TestAddresses(t *testing.T) {
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1234}
	for name, c := range map[string]struct {
		set              func(*Config)
		url, bus         string
		apiName, busName string
	}{
		"nothing set":      {func(*Config) {}, "https://127.0.0.1:1234", "nats://127.0.0.1:4222", "localhost", "127.0.0.1"},
		"plain":            {func(c *Config) { c.Plain = true }, "http://127.0.0.1:1234", "nats://127.0.0.1:4222", "localhost", "127.0.0.1"},
		"a public address": {func(c *Config) { c.PublicURL = "https://c.example:8443" }, "https://c.example:8443", "nats://c.example:4222", "c.example", "c.example"},
		"a public bus": {func(c *Config) { c.PublicURL, c.BusPublicURL = "https://c.example", "tls://b.example:5222" },
			"https://c.example", "tls://b.example:5222", "c.example", "b.example"},
		"more names":     {func(c *Config) { c.Names = []string{"10.0.0.7"} }, "https://127.0.0.1:1234", "nats://127.0.0.1:4222", "10.0.0.7", "10.0.0.7"},
		"inside a stack": {func(c *Config) { c.BusURL = "nats://nats:4222" }, "https://127.0.0.1:1234", "nats://nats:4222", "::1", "nats"},
	} {
		config := goodConfig()
		c.set(&config)
		if diff := cmp.Diff([]string{c.url, c.bus}, []string{config.publicURL(addr), config.busPublicURL()}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if !slices.Contains(config.apiNames(), c.apiName) || !slices.Contains(config.busNames(), c.busName) {
			t.Errorf("%s: the certificates name %v and %v", name, config.apiNames(), config.busNames())
		}
	}
}
