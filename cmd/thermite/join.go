package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"thermite/pkg/control/service"
)

// What a rig's machine is given: the token and two more files, and the
// commands that run the rig there.

// The files that a rig's machine needs.
const (
	rigTokenFile  = "rig.token"
	authorityFile = "authority.pem"
	signingFile   = "control.pub"
)

const rigFilesHelp = "write " + rigTokenFile + ", " + authorityFile + " and " + signingFile + " into this folder, and don't show the token"

// showRigToken shows a rig's new token and what else its machine needs, or
// writes them into dir.
func (a *app) showRigToken(made service.RigToken, dir string) error {
	token := made.Token
	if dir != "" {
		var err error
		if dir, err = writeRigFiles(dir, made); err != nil {
			return fmt.Errorf("rig %s is made, but its token could not be written: %w\nGet a new one: thermite rig token %s", made.Name, err, made.Name)
		}
		made.Token = ""
		token = "in " + filepath.Join(dir, rigTokenFile)
	}
	if a.json {
		return a.printJSON(made)
	}
	t := &table{header: []string{"", ""}, bare: true}
	t.add("rig", made.Name)
	t.add("token", token)
	t.add("control", made.Join.ControlURL)
	t.add("bus", made.Join.BusURL)
	t.add("authority", made.Join.Fingerprint)
	t.add("signing key", made.Join.SigningKey)
	if err := a.printTable(t); err != nil {
		return err
	}
	a.warnJoin(made, dir)
	return nil
}

// warnJoin says what to do next with a rig's new token.
func (a *app) warnJoin(made service.RigToken, dir string) {
	if dir == "" {
		a.warn("\nThe token is shown this once. With --dir DIR it goes into a file, beside the authority's certificate and control's key.")
	}
	here := onLoopback(made.Join.ControlURL)
	if !here {
		a.warnJoinLine(made, dir)
	}
	c := rigPrograms{made: made, in: func(name string) string { return "~/thermite-" + made.Name + "/" + name }}
	if here {
		c.near, c.more = nearPrograms(), " --poll-seconds 1"
	}
	switch {
	case here && dir != "":
		c.in = func(name string) string { return shellWord(filepath.Join(dir, name)) }
		a.warn("\nControl is reached from this machine alone, so run the rig here, in three terminals:")
	case here:
		a.warn("\nControl is reached from this machine alone, so run the rig here, with %s in ~/thermite-%s, in three terminals:", rigFiles(""), made.Name)
	default:
		a.warn("\nOn the rig's machine, with %s in ~/thermite-%s, in three terminals:", rigFiles(dir), made.Name)
	}
	a.warn("  %s\n  %s\n  %s", c.broker(), c.harness(), c.supervisor())
	a.warn("So every role is the user that runs them. As root each role needs a user of its own: give thermite-broker a file of\n" +
		"them with --file, as docs/broker.md says; it does not start without.")
	if here {
		a.warn("For a rig on another machine control must be reached from there: thermite up --address, or --public-url of a control\n" +
			"that runs by itself.")
	}
}

// warnJoinLine says how a machine with systemd becomes the rig.
func (a *app) warnJoinLine(made service.RigToken, dir string) {
	token := made.Token
	if dir != "" {
		token = "- < " + shellWord(filepath.Join(dir, rigTokenFile))
	}
	a.warn("\nOn the rig's machine, once `thermite install rig` was run there:\n  sudo thermite rig join --control %s --rig %s --fingerprint %s --rig-token %s",
		made.Join.ControlURL, made.Name, made.Join.Fingerprint, token)
	a.warn("Or without systemd's units:")
}

// rigFiles names the files, and the folder that they were written into.
func rigFiles(dir string) string {
	names := rigTokenFile + ", " + authorityFile + " and " + signingFile
	if dir != "" {
		names += " of " + dir
	}
	return names
}

// rigPrograms writes the commands that run a rig. Its harness and supervisor
// share the inbox; each program has a folder of its own beside it.
type rigPrograms struct {
	made service.RigToken
	// in gives a file's path in the rig's folder, as a word of a shell.
	in func(name string) string
	// near stands before each program's name, and more after the supervisor's
	// flags.
	near, more string
}

func (c rigPrograms) broker() string {
	return fmt.Sprintf("%sthermite-broker --state %s --socket %s", c.near, c.in("broker"), c.in("broker.sock"))
}

func (c rigPrograms) harness() string {
	return fmt.Sprintf("%sthermite-harness --rig %s --state %s --socket %s --broker %s --control-key %s --inbox %s --trial-listen 127.0.0.1:0",
		c.near, c.made.Name, c.in("harness"), c.in("harness.sock"), c.in("broker.sock"), c.in(signingFile), c.in("inbox"))
}

func (c rigPrograms) supervisor() string {
	return fmt.Sprintf("%sthermite-supervisor --rig %s --control-url %s --nats-url %s --token-file %s --authority %s --harness-socket %s --state %s --inbox %s%s",
		c.near, c.made.Name, c.made.Join.ControlURL, c.made.Join.BusURL, c.in(rigTokenFile), c.in(authorityFile),
		c.in("harness.sock"), c.in("supervisor"), c.in("inbox"), c.more)
}

// nearPrograms gives the folder of this program as it was called, with its
// slash: the others stand beside it.
func nearPrograms() string {
	if dir := filepath.Dir(os.Args[0]); dir != "." {
		return dir + "/"
	}
	return ""
}

// onLoopback says whether an address is this machine's alone.
func onLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// writeRigFiles writes the files that a rig's machine needs, and gives the
// folder's whole path.
func writeRigFiles(dir string, made service.RigToken) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for name, text := range map[string]string{authorityFile: made.Join.Authority, signingFile: made.Join.SigningKey + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	path := filepath.Join(dir, rigTokenFile)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return "", err
	}
	return dir, os.WriteFile(path, []byte(made.Token+"\n"), 0o600)
}
