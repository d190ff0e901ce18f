package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// screenWait is how long the first screen may take: the rig asks every 5
// seconds whether one is watched.
const screenWait = 10 * time.Second

func runScreenCommand(a *app) *cobra.Command {
	follow := false
	cmd := forRun(a, "screen RUN TRIAL", "show the last lines that a trial's worker printed", []string{"trial"},
		func(ctx context.Context, c *client.Client, r service.RunName, args []string) error {
			shown := ""
			for after := (wire.Time{}); ; {
				s, err := c.Screen(ctx, r, numberOf(args[0]), after, screenWait)
				switch {
				case err != nil:
					return err
				case !s.Known && !follow:
					return &client.Error{Exit: client.ExitFailed, Words: "rig " + s.Rig + " has not sent the screen of trial " + args[0],
						Next: "Its supervisor sends it while it is on the bus: thermite rig show " + s.Rig + " says how it is."}
				case s.Gone != "":
					return &client.Error{Exit: client.ExitFailed, Words: s.Gone, Next: "thermite run trial list " + r.Run + " shows those at work."}
				case a.json:
					err = a.printLine(s)
				default:
					_, err = fmt.Fprint(a.out, news(shown, s.Text))
				}
				if err != nil || !follow {
					return err
				}
				shown, after = s.Text, s.At
			}
		})
	cmd.Long = `Show the last lines that a trial's worker printed, at most 64 KiB. --follow goes on
with what it prints next. The rig sends a screen only while somebody watches.`
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what it prints next")
	return cmd
}

// news gives what a screen has after what was shown of the one before. Its
// start may be gone by then.
func news(shown, now string) string {
	for from := 0; from < len(shown); {
		if rest, ok := strings.CutPrefix(now, shown[from:]); ok {
			return rest
		}
		next := strings.IndexByte(shown[from:], '\n')
		if next < 0 {
			break
		}
		from += next + 1
	}
	return now
}
