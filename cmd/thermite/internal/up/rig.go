package up

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"thermite/cmd/thermite/internal/rig"
	"thermite/pkg/broker/client"
	"thermite/pkg/bus"
	"thermite/pkg/harness"
	"thermite/pkg/supervisor"
)

// startRig starts the rig's broker, harness and supervisor.
func (u *up) startRig(ctx context.Context, tokenFile string) error {
	cfg := harness.Config{
		Rig: RigName, StateDir: u.folders.harness, Socket: u.socket,
		Build: u.cfg.Build, Now: u.cfg.Now, Rand: u.cfg.Rand, Log: u.log("harness"),
	}
	if u.cfg.Sample > 0 {
		cfg.Sample, cfg.SampleRate, cfg.SampleSeed = u.cfg.Sample, u.cfg.SampleRate, 1
	} else if err := u.startWork(ctx, &cfg); err != nil {
		return err
	}
	var err error
	if u.harness, err = harness.New(ctx, cfg); err != nil {
		return err
	}
	u.closers = append(u.closers, u.harness.Close)
	u.run("harness", u.harness.Run)
	s, err := supervisor.New(ctx, supervisor.Config{
		Rig: RigName, StateDir: u.folders.supervisor, ControlURL: u.controlURL, BusURL: u.busURL, TokenFile: tokenFile,
		Authority: filepath.Join(u.folders.control, bus.AuthorityFile), Socket: u.socket, Poll: supervisor.Seconds(u.cfg.Poll), Inbox: u.folders.inbox, LocalKits: true,
		Build: u.cfg.Build, Now: u.cfg.Now, Rand: u.cfg.Rand, Log: u.log("supervisor"),
	})
	if err != nil {
		return err
	}
	u.run("supervisor", s.Run)
	return nil
}

// startWork starts the broker, and gives the harness what it works with.
func (u *up) startWork(ctx context.Context, cfg *harness.Config) (err error) {
	u.rig, err = rig.Open(ctx, rig.Config{Dir: u.folders.state, Worker: u.cfg.Worker,
		Build: u.cfg.Build, Now: u.cfg.Now, Rand: u.cfg.Rand, Log: u.log("broker")})
	if errors.Is(err, rig.ErrNoWay) {
		return fmt.Errorf("%w; name another folder with --state, such as one in /var/lib, or open that one with chmod o+x", err)
	}
	if err != nil {
		return err
	}
	u.closers = append(u.closers, u.rig.Close)
	u.run("broker", u.rig.Run)
	if isolated, why := u.rig.Isolated(); !isolated {
		u.notices = append(u.notices, "roles are not isolated from each other: "+why)
	}
	roles := client.New(client.Config{Socket: u.rig.Socket, Log: u.log("harness")})
	u.closers = append(u.closers, func() error {
		if err := roles.Close(); !errors.Is(err, net.ErrClosed) { // its broker has ended
			return err
		}
		return nil
	})
	cfg.Broker, cfg.Roles = u.rig.Socket, roles
	cfg.Work, cfg.Inbox, cfg.Path = u.rig.Work, u.folders.inbox, u.rig.Path
	cfg.Worker, cfg.WorkerArgs = u.rig.Worker[0], u.rig.Worker[1:]
	cfg.TrialListen = "127.0.0.1:0"
	cfg.ControlKey = filepath.Join(u.folders.harness, "control.pub")
	return u.control.WriteSigningKey(cfg.ControlKey)
}
