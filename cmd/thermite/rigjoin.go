package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/cmd/thermite/internal/install"
	"thermite/pkg/bus"
	"thermite/pkg/control/service"
	"thermite/pkg/files"
	"thermite/pkg/wire"
)

// How a machine becomes a rig: one line that control prints names control, the
// rig and the authority's fingerprint; the rest it asks control for.

type joinFlags struct {
	control, rig, fingerprint, token, root string
	noStart                                bool
}

func rigJoinCommand(a *app) *cobra.Command {
	var f joinFlags
	c := &cobra.Command{
		Use: "join", Short: "make this machine a rig: the line that rig add prints",
		Long: `Make this machine the rig that "thermite rig add" made: ask control for what a
rig must know, check that it is the control that is meant, write the files of
/etc/thermite, and start the rig's units if "thermite install rig" put them here.`,
		Example: "  sudo thermite rig join --control https://control:8443 --rig lathe --fingerprint F --rig-token T",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.joinRig(cmd.Context(), f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.control, "control", "", "control's address")
	fl.StringVar(&f.rig, "rig", "", "the rig's name")
	fl.StringVar(&f.fingerprint, "fingerprint", "", "the fingerprint of control's authority")
	fl.StringVar(&f.token, "rig-token", "", "the rig's token; - reads it from standard input")
	fl.StringVar(&f.root, "root", "/", "the folder of the machine's files: an image's, in place of this machine")
	fl.BoolVar(&f.noStart, "no-start", false, "write the files, and start nothing")
	return c
}

// joined is what join answers with in JSON.
type joined struct {
	Rig     string   `json:"rig"`
	Join    any      `json:"join"`
	Files   []string `json:"files"`
	Started bool     `json:"started"`
}

func (f *joinFlags) check(in *bufio.Reader) error {
	for name, value := range map[string]string{"--control": f.control, "--rig": f.rig, "--fingerprint": f.fingerprint, "--rig-token": f.token} {
		if value == "" {
			return wrongUse("%s is missing: thermite rig add, where control is, prints the whole line", name)
		}
	}
	if err := wire.CheckName("rig", f.rig); err != nil {
		return useError{err}
	}
	if !strings.HasPrefix(f.control, "https://") {
		return wrongUse("--control %s must begin with https://", f.control)
	}
	if f.token == "-" {
		line, err := in.ReadString('\n')
		if f.token = strings.TrimSpace(line); f.token == "" {
			return wrongUse("standard input has no token: %w", err)
		}
	}
	return nil
}

func (a *app) joinRig(ctx context.Context, f joinFlags) error {
	if err := f.check(bufio.NewReader(a.in)); err != nil {
		return err
	}
	join, err := f.ask(ctx)
	if err != nil {
		return fmt.Errorf("joining rig %s to %s: %w", f.rig, f.control, err)
	}
	written, err := f.write(join)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w\nThis needs root: run the line with sudo, or name an image's folder with --root", err)
	}
	if err != nil {
		return fmt.Errorf("joining rig %s to %s: %w", f.rig, f.control, err)
	}
	started, err := f.start(ctx)
	if err != nil {
		return fmt.Errorf("this machine is rig %s of %s, but its units did not start: %w\nsystemctl status 'thermite-*' says more", f.rig, f.control, err)
	}
	if a.json {
		return a.printJSON(joined{Rig: f.rig, Join: join, Files: written, Started: started})
	}
	for _, name := range written {
		fmt.Fprintln(a.out, "wrote   ", name)
	}
	if started {
		fmt.Fprintf(a.out, "started  the rig's units; thermite rig list, where control is, shows when it reports\n")
		return nil
	}
	a.warn("Nothing was started: thermite install rig puts the rig's programs and units on this machine and starts them.")
	return nil
}

// ask asks control for what a rig must know. Only the certificate comes over a
// connection that is not checked, and it is, by its fingerprint.
func (f *joinFlags) ask(ctx context.Context) (service.Join, error) {
	first := client.New(client.Config{URL: f.control, Version: version, Unchecked: true})
	defer first.Close()
	authority, err := first.Authority(ctx)
	if err != nil {
		return service.Join{}, err
	}
	is, err := bus.FingerprintOf([]byte(authority.Certificate))
	if err != nil {
		return service.Join{}, err
	}
	if is != f.fingerprint {
		return service.Join{}, fmt.Errorf("the authority there has the fingerprint %s, not %s: this is another control, or somebody stands between", is, f.fingerprint)
	}
	pool, err := bus.ParsePool([]byte(authority.Certificate))
	if err != nil {
		return service.Join{}, err
	}
	c := client.New(client.Config{URL: f.control, Token: f.token, Authority: pool, Version: version})
	defer c.Close()
	join, err := c.JoinRig(ctx, f.rig)
	join.Authority = authority.Certificate
	return join, err
}

// write writes the files of the rig's settings; the token is root's alone.
func (f *joinFlags) write(join service.Join) ([]string, error) {
	env := fmt.Sprintf("# Written by thermite rig join.\nTHERMITE_RIG=%s\nTHERMITE_CONTROL_URL=%s\nTHERMITE_NATS_URL=%s\n", f.rig, f.control, join.BusURL)
	var written []string
	for _, one := range []struct {
		name, text string
		mode       fs.FileMode
	}{
		{install.AuthorityFile, join.Authority, 0o644},
		{install.SigningFile, join.SigningKey + "\n", 0o644},
		{install.RigTokenFile, f.token + "\n", 0o600},
		{install.RigSettingsFile, env, 0o644},
	} {
		path := install.SettingsPath(f.root, one.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return written, err
		}
		if err := files.Write(path, []byte(one.text), one.mode); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, nil
}

// start starts the rig's units, if they are on this machine.
func (f *joinFlags) start(ctx context.Context) (bool, error) {
	units := install.Starts(install.Rig)
	if f.noStart || f.root != "/" || !install.Installed("/", install.Rig) {
		return false, nil
	}
	out, err := exec.CommandContext(ctx, "systemctl", append([]string{"--no-block", "restart"}, units...)...).CombinedOutput()
	if err != nil {
		return false, fmt.Errorf("%w: %s", err, out)
	}
	return true, nil
}
