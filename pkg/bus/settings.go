package bus

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"thermite/pkg/wire"
)

// The files of the folder that the server reads.
const (
	// ConfFile is the server's settings, which its starter writes.
	ConfFile = "nats.conf"
	// UsersFile is the server's users, which control writes.
	UsersFile = "users.conf"
	// CertFile and KeyFile are the server's certificate and its key, which
	// control writes.
	CertFile = "server.pem"
	KeyFile  = "server.key"
)

// Defaults of Settings.
const (
	DefaultMaxStore = 64 << 30
	DefaultMaxMem   = 64 << 20
	DefaultHost     = "127.0.0.1"
	DefaultName     = "thermite"
)

// Settings are what a bus's server is started with.
type Settings struct {
	// Dir holds the files that the server reads.
	Dir string
	// StoreDir holds JetStream's store; empty: jetstream in Dir.
	StoreDir string
	// Host is the address to listen on; empty: 127.0.0.1.
	Host string
	// Port is the port to listen on; 0: 4222, -1: one the system picks.
	Port int
	// ServerName names the server in its log and its monitoring.
	ServerName string
	// MaxStore bounds JetStream's store, in bytes; 0: 64 GiB.
	MaxStore int64
	// MaxMem bounds what JetStream keeps in memory only, in bytes; 0: 64 MiB.
	MaxMem int64
	// LeafListen is the address leaf nodes may dial, host:port; empty: none.
	LeafListen string
}

// withDefaults fills what is left open.
func (s Settings) withDefaults() Settings {
	if s.StoreDir == "" {
		s.StoreDir = filepath.Join(s.Dir, "jetstream")
	}
	if s.Host == "" {
		s.Host = DefaultHost
	}
	if s.Port == 0 {
		s.Port = wire.BusPort
	}
	if s.ServerName == "" {
		s.ServerName = DefaultName
	}
	if s.MaxStore == 0 {
		s.MaxStore = DefaultMaxStore
	}
	if s.MaxMem == 0 {
		s.MaxMem = DefaultMaxMem
	}
	return s
}

// Check says what is wrong with the settings.
func (s Settings) Check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	for what, path := range map[string]string{"dir": s.Dir, "store_dir": s.StoreDir} {
		if path != "" && !filepath.IsAbs(path) {
			bad("%s: %q is no absolute path", what, path)
		}
		if strings.ContainsAny(path, "\"\\\x00\r\n") {
			bad("%s: %q holds a quote, a backslash or a line break", what, path)
		}
	}
	if s.Dir == "" {
		bad("dir: it is empty")
	}
	if s.Port < -1 || s.Port > 65535 {
		bad("port: %d is none of -1 to 65535", s.Port)
	}
	if strings.ContainsAny(s.Host, "\"\\\r\n ") {
		bad("host: %q is no address", s.Host)
	}
	if s.ServerName != "" {
		if err := wire.CheckName("server", s.ServerName); err != nil {
			bad("server_name: %w", err)
		}
	}
	if s.MaxStore < 0 || s.MaxMem < 0 {
		bad("max_store %d, max_mem %d: below 0", s.MaxStore, s.MaxMem)
	}
	if s.LeafListen != "" {
		if _, port, err := net.SplitHostPort(s.LeafListen); err != nil || strings.ContainsAny(s.LeafListen, "\"\\\r\n ") {
			bad("leaf_listen: %q is no host:port", s.LeafListen)
		} else if n, err := strconv.Atoi(port); err != nil || n < -1 || n > 65535 {
			bad("leaf_listen: %q names no port", s.LeafListen)
		}
	}
	return errors.Join(errs...)
}

// confTemplate holds every setting: the server reads the file again at each
// reload, and refuses a reload that would lose a setting made elsewhere.
var confTemplate = template.Must(template.New(ConfFile).Funcs(template.FuncMap{
	"q": func(s string) string { return `"` + s + `"` },
}).Parse(`# The settings of Thermite's message bus. Written at each start of the server.

server_name: {{q .ServerName}}
listen: {{q .Listen}}

# A page of a rig's events, or one event, is one message.
max_payload: {{.MaxPayload}}
# A client that is gone is noticed within a minute.
ping_interval: "20s"
ping_max: 2
write_deadline: "10s"

tls {
  cert_file: {{q .Cert}}
  key_file: {{q .Key}}
  min_version: "1.3"
  timeout: 10
}

jetstream {
  store_dir: {{q .StoreDir}}
  max_file_store: {{.MaxStore}}
  max_memory_store: {{.MaxMem}}
  # An answer means that the message is on the disk.
  sync_interval: always
  # How many messages wait for a stream: one rig's flood is then no long wait
  # for the others. The server's own default is 100,000.
  max_buffered_msgs: {{.MaxBuffered}}
  limits {
    # Two a rig in COMMANDS and CONFIG; the server's own default is 1,000.
    default_max_consumers: {{.MaxConsumers}}
    batch { max_msgs: {{.MaxBatch}} }
  }
}
{{with .LeafListen}}
leafnodes {
  listen: {{q .}}
  tls {
    cert_file: {{q $.Cert}}
    key_file: {{q $.Key}}
    min_version: "1.3"
    timeout: 10
  }
}
{{end}}
include {{q .UsersFile}}
`))

// MaxConsumers bounds a stream's consumers: one a rig, and control's own.
const MaxConsumers = 100_000

// maxBuffered is how many messages wait for a stream, several whole batches
// of EVENTS.
const maxBuffered = 10 * wire.MaxBatchEvents

// Render gives the server's settings, nats.conf.
func (s Settings) Render() ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("checking the bus's settings: %w", err)
	}
	s = s.withDefaults()
	var b bytes.Buffer
	err := confTemplate.Execute(&b, map[string]any{
		"ServerName": s.ServerName, "Listen": net.JoinHostPort(s.Host, strconv.Itoa(s.Port)),
		"MaxPayload": wire.MaxBusMessage,
		"Cert":       filepath.Join(s.Dir, CertFile), "Key": filepath.Join(s.Dir, KeyFile),
		"StoreDir": s.StoreDir, "MaxStore": s.MaxStore, "MaxMem": s.MaxMem,
		"MaxConsumers": MaxConsumers, "MaxBatch": wire.MaxBatchEvents, "MaxBuffered": maxBuffered,
		"LeafListen": s.LeafListen, "UsersFile": UsersFile,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the bus's settings: %w", err)
	}
	return b.Bytes(), nil
}
