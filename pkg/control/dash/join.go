package dash

import (
	"strings"

	"thermite/pkg/control/service"
)

// The commands that a new rig's machine is given, with the addresses and
// files that they need. They are for whoever the rig runs as, in a folder of
// their home.

// joinFolder is the rig's folder, as a shell's word begins.
func joinFolder(made service.RigToken) string { return "~/thermite-" + made.Name }

// joinFiles keeps the rig's token, the authority's certificate and the key
// that control signs its commands with.
func joinFiles(made service.RigToken) string {
	dir := joinFolder(made)
	keep := func(mode, name, text string) string {
		return "\ninstall -m " + mode + " /dev/stdin " + dir + "/" + name + " <<'END'\n" + strings.TrimSpace(text) + "\nEND"
	}
	return "install -d -m 0700 " + dir + keep("0600", "rig.token", made.Token) +
		keep("0644", "authority.pem", made.Join.Authority) + keep("0644", "control.pub", made.Join.SigningKey)
}

// joinBroker starts the rig's broker.
func joinBroker(made service.RigToken) string {
	dir := joinFolder(made)
	return joinCommand("thermite-broker", "--state", dir+"/broker", "--socket", dir+"/broker.sock")
}

// joinHarness starts the rig's harness.
func joinHarness(made service.RigToken) string {
	dir := joinFolder(made)
	return joinCommand("thermite-harness", "--rig", made.Name, "--state", dir+"/harness", "--socket", dir+"/harness.sock",
		"--broker", dir+"/broker.sock", "--control-key", dir+"/control.pub", "--inbox", dir+"/inbox", "--trial-listen", "127.0.0.1:0")
}

// joinSupervisor starts the rig's supervisor.
func joinSupervisor(made service.RigToken) string {
	dir := joinFolder(made)
	return joinCommand("thermite-supervisor", "--rig", made.Name, "--control-url", made.Join.ControlURL, "--nats-url", made.Join.BusURL,
		"--token-file", dir+"/rig.token", "--authority", dir+"/authority.pem", "--harness-socket", dir+"/harness.sock",
		"--state", dir+"/supervisor", "--inbox", dir+"/inbox")
}

// joinCommand writes a command, a flag and its value to a line.
func joinCommand(program string, flags ...string) string {
	text := program
	for i := 0; i < len(flags); i += 2 {
		text += " \\\n  " + flags[i] + " " + flags[i+1]
	}
	return text
}
