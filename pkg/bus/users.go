package bus

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"thermite/pkg/files"
	"thermite/pkg/wire"
)

// Users are everyone who may sign in to the bus, by the public parts of
// their keys. An empty Control, System or Backup leaves that user out.
type Users struct {
	Control, System, Backup string
	Rigs                    []RigUser
}

// RigUser is a rig whose supervisor may sign in.
type RigUser struct {
	Rig, Key string
	// Runs are the rig's runs, by control's registry, newest first. The rig
	// may publish the live lines of the first wire.MaxLiveRuns.
	Runs []string
}

// sorted gives the users in the file's order, checked and cut to their
// limits. What comes in stays as it is.
func (u Users) sorted() (Users, error) {
	keys := make(map[string]string)
	take := func(who, key string) error {
		if err := CheckUserKey(key); err != nil {
			return fmt.Errorf("the key of %s: %w", who, err)
		}
		if other, taken := keys[key]; taken {
			return fmt.Errorf("%s and %s have one key", other, who)
		}
		keys[key] = who
		return nil
	}
	for _, own := range []struct{ who, key string }{{"control", u.Control}, {"control's system user", u.System}, {"the backup", u.Backup}} {
		if own.key == "" {
			continue
		}
		if err := take(own.who, own.key); err != nil {
			return Users{}, err
		}
	}
	u.Rigs = slices.Clone(u.Rigs)
	slices.SortFunc(u.Rigs, func(a, b RigUser) int { return strings.Compare(a.Rig, b.Rig) })
	for i, r := range u.Rigs {
		if err := wire.CheckName("rig", r.Rig); err != nil {
			return Users{}, err
		}
		if i > 0 && u.Rigs[i-1].Rig == r.Rig {
			return Users{}, fmt.Errorf("rig %s is there twice", r.Rig)
		}
		if err := take("rig "+r.Rig, r.Key); err != nil {
			return Users{}, err
		}
		runs, err := sortedRuns(r)
		if err != nil {
			return Users{}, err
		}
		u.Rigs[i].Runs = runs
	}
	return u, nil
}

func sortedRuns(r RigUser) ([]string, error) {
	runs := slices.Clone(r.Runs[:min(len(r.Runs), wire.MaxLiveRuns)])
	for _, run := range runs {
		if err := wire.CheckName("run", run); err != nil {
			return nil, fmt.Errorf("rig %s: %w", r.Rig, err)
		}
	}
	slices.Sort(runs)
	return slices.Compact(runs), nil
}

// Render gives the users file. The same users always give the same bytes.
func (u Users) Render() ([]byte, error) {
	u, err := u.sorted()
	if err != nil {
		return nil, fmt.Errorf("writing the bus's users: %w", err)
	}
	var b bytes.Buffer
	b.WriteString("# The users of Thermite's message bus. Control writes this file: what you change here is lost.\n\n")
	fmt.Fprintf(&b, "system_account: %q\n\naccounts {\n", AccountSystem)
	renderSystem(&b, u)
	renderControl(&b, u)
	for _, r := range u.Rigs {
		renderRig(&b, r)
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

func renderSystem(b *bytes.Buffer, u Users) {
	fmt.Fprintf(b, "  %q {\n    users: [\n", AccountSystem)
	if u.System != "" {
		renderUser(b, u.System, rules{publish: systemGrants, subscribe: []string{SystemInbox + ".>"}})
	}
	b.WriteString("    ]\n  }\n")
}

func renderControl(b *bytes.Buffer, u Users) {
	fmt.Fprintf(b, "  %q {\n    jetstream: enabled\n    users: [\n", AccountControl)
	if u.Control != "" {
		renderUser(b, u.Control, rules{deny: controlDenied})
	}
	if u.Backup != "" {
		renderUser(b, u.Backup, rules{publish: backupGrants, subscribe: []string{wire.BackupInbox + ".>"}})
	}
	b.WriteString("    ]\n    exports: [\n")
	for _, s := range services {
		fmt.Fprintf(b, "      {service: %q", s.subject)
		if s.rigToken > 0 {
			fmt.Fprintf(b, ", account_token_position: %d", s.rigToken)
		}
		if s.stream {
			b.WriteString(", response_type: stream")
		}
		b.WriteString("}\n")
	}
	b.WriteString("    ]\n  }\n")
}

// What one rig may hold of the server: far more than a supervisor, its
// connection and those before it that the server did not see end yet, need.
const (
	maxRigConnections   = 64
	maxRigSubscriptions = 1000 // of one connection
	maxRigLeafs         = 8
)

func renderRig(b *bytes.Buffer, r RigUser) {
	grants := rigGrants(r)
	may := rules{subscribe: []string{wire.RigInbox(r.Rig) + ".>"}}
	for _, g := range grants {
		may.publish = append(may.publish, g.as)
	}
	fmt.Fprintf(b, "  %q {\n    users: [\n", r.Rig)
	renderUser(b, r.Key, may)
	fmt.Fprintf(b, "    ]\n    limits: {max_connections: %d, max_subscriptions: %d, max_leafnodes: %d}\n    imports: [\n",
		maxRigConnections, maxRigSubscriptions, maxRigLeafs)
	for _, g := range grants {
		fmt.Fprintf(b, "      {service: {account: %q, subject: %q}", AccountControl, g.subject)
		if g.as != g.subject {
			fmt.Fprintf(b, ", to: %q", g.as)
		}
		b.WriteString("}\n")
	}
	b.WriteString("    ]\n  }\n")
}

// rules are a user's permissions: what it may publish and subscribe to, all
// where nothing is named, but for what deny names.
type rules struct{ publish, subscribe, deny []string }

func renderUser(b *bytes.Buffer, key string, r rules) {
	fmt.Fprintf(b, "      {nkey: %s, permissions: {", key)
	switch {
	case r.deny != nil:
		fmt.Fprintf(b, "publish: {deny: %s}", list(r.deny))
	default:
		fmt.Fprintf(b, "publish: {allow: %s}, subscribe: {allow: %s}", list(r.publish), list(r.subscribe))
	}
	b.WriteString("}}\n")
}

// list writes subjects one a line. A subject holds no quote and no space.
func list(subjects []string) string {
	var b strings.Builder
	b.WriteString("[\n")
	for _, s := range subjects {
		fmt.Fprintf(&b, "        %q\n", s)
	}
	b.WriteString("      ]")
	return b.String()
}

// WriteUsers keeps the users file in dir, and says whether it changed. The
// file is there whole or as it was, and on the disk when WriteUsers returns.
// The server's group may read it.
func WriteUsers(dir string, u Users) (changed bool, err error) {
	b, err := u.Render()
	if err != nil {
		return false, err
	}
	return files.Keep(filepath.Join(dir, UsersFile), b, 0o640)
}
