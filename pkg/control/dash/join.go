package dash

import (
	"strings"

	"thermite/pkg/control/service"
)

// The commands that a new rig's machine is given, with the addresses and
// files that they need.

// joinFiles keeps the rig's token and the authority's certificate.
func joinFiles(made service.RigToken) string {
	return "install -d -m 0755 /etc/thermite\n" +
		"install -m 0600 /dev/stdin /etc/thermite/rig.token <<'END'\n" + made.Token + "\nEND\n" +
		"install -m 0644 /dev/stdin /etc/thermite/authority.pem <<'END'\n" + strings.TrimSpace(made.Join.Authority) + "\nEND"
}

// joinHarness starts the rig's harness.
func joinHarness(made service.RigToken) string {
	return "thermite-harness --rig " + made.Name
}

// joinSupervisor starts the rig's supervisor.
func joinSupervisor(made service.RigToken) string {
	return "thermite-supervisor --rig " + made.Name + " \\\n  --control-url " + made.Join.ControlURL + " \\\n  --nats-url " + made.Join.BusURL
}
