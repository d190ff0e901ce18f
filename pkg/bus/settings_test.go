package bus_test

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"thermite/pkg/bus"
)

// parse reads the settings as the server does.
func parse(t *testing.T, s bus.Settings) *server.Options {
	t.Helper()
	conf, err := s.Render()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.Dir, bus.ConfFile), string(conf))
	opts, err := server.ProcessConfigFile(filepath.Join(s.Dir, bus.ConfFile))
	if err != nil {
		t.Fatalf("%v in\n%s", err, conf)
	}
	return opts
}

// prepared is a folder with what the server reads beside its settings.
func prepared(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := openAuthority(t, t.TempDir(), time.Now).KeepServerCert(dir, []string{"127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.WriteUsers(dir, bus.Users{Control: newKey(t)}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The server gets every setting, and what is left open has its default: TLS
// only, messages of 8 MiB, and an answer only for what is on the disk.
func TestSettings(t *testing.T) {
	dir := prepared(t)
	o := parse(t, bus.Settings{Dir: dir})
	if o.TLSConfig == nil || o.TLSConfig.MinVersion != tls.VersionTLS13 || o.AllowNonTLS {
		t.Error("it takes connections without TLS 1.3")
	}
	if o.MaxPayload != 8<<20 || !o.SyncAlways || !o.JetStream || o.JetStreamMaxStore != 64<<30 || o.JetStreamMaxMemory != 64<<20 {
		t.Errorf("messages of %d, sync always %v, JetStream %v with %d and %d", o.MaxPayload, o.SyncAlways, o.JetStream, o.JetStreamMaxStore, o.JetStreamMaxMemory)
	}
	if o.Host != "127.0.0.1" || o.Port != 4222 || o.ServerName != "thermite" || o.StoreDir != filepath.Join(dir, "jetstream") {
		t.Errorf("it listens on %s:%d, is named %s and stores in %s", o.Host, o.Port, o.ServerName, o.StoreDir)
	}
	if o.JetStreamLimits.DefaultMaxConsumers != bus.MaxConsumers || o.JetStreamLimits.MaxBatchSize != 1000 || o.LeafNode.Port != 0 || o.HTTPPort != 0 {
		t.Errorf("got %+v, leaf %d, http %d", o.JetStreamLimits, o.LeafNode.Port, o.HTTPPort)
	}
	store := t.TempDir()
	o = parse(t, bus.Settings{
		Dir: dir, StoreDir: store, Host: "::1", Port: 4333, ServerName: "bus-2", MaxStore: 12345678, MaxMem: 87654, LeafListen: "127.0.0.1:7422",
	})
	if o.Host != "::1" || o.Port != 4333 || o.ServerName != "bus-2" || o.StoreDir != store || o.JetStreamMaxStore != 12345678 || o.JetStreamMaxMemory != 87654 {
		t.Errorf("it listens on %s:%d, is named %s and stores %d in %s", o.Host, o.Port, o.ServerName, o.JetStreamMaxStore, o.StoreDir)
	}
	if o.LeafNode.Host != "127.0.0.1" || o.LeafNode.Port != 7422 || o.LeafNode.TLSConfig == nil {
		t.Errorf("leaf nodes: %s:%d", o.LeafNode.Host, o.LeafNode.Port)
	}
}

// Settings that are wrong are refused, each by its name.
func TestSettingsRefused(t *testing.T) {
	dir := t.TempDir()
	for want, s := range map[string]bus.Settings{
		"dir: it is empty": {},
		"dir: \"rel":       {Dir: "relative"},
		"dir: ":            {Dir: "/a\"b"},
		"store_dir":        {Dir: dir, StoreDir: "/a\nb"},
		"port":             {Dir: dir, Port: 65536},
		"host":             {Dir: dir, Host: "a b"},
		"server_name":      {Dir: dir, ServerName: "A B"},
		"max_store":        {Dir: dir, MaxStore: -1},
		"leaf_listen":      {Dir: dir, LeafListen: "nowhere"},
		"leaf_listen: ":    {Dir: dir, LeafListen: "a:b"},
	} {
		if _, err := s.Render(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
