package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"thermite/pkg/control/service"
)

func busCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "bus", Short: "show the message bus as control sees it", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			state, err := c.Bus(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(state)
			}
			if err := a.printTable(a.busFacts(state)); err != nil {
				return err
			}
			if state.Server == nil || len(state.Server.Streams) == 0 {
				return nil
			}
			fmt.Fprintln(a.out)
			return a.printTable(streamsTable(state.Server.Streams))
		},
	}
}

// busFacts are the lines about the bus and control's parts on it.
func (a *app) busFacts(b service.BusState) *table {
	now := a.now()
	t := &table{header: []string{"PART", "STATE", "WHAT"}, wide: []int{2}, wraps: true}
	link := b.Link.Error
	if !b.Link.Since.IsZero() {
		link = join(a.moment(b.Link.Since.Time(), now), link)
	}
	t.add("connection", b.Link.State, link)
	if s := b.Server; s != nil {
		t.add("server", s.Version, fmt.Sprintf("%s of memory, %d clients, %d leaf nodes, %d slow consumers", bytesOf(s.MemoryBytes), s.Clients, s.Leafs, s.SlowConsumers))
		t.add("store", bytesOf(int64(s.StoreBytes)), "of "+bytesOf(int64(s.StoreMaxBytes)))
	} else {
		t.add("server", "unknown", b.ServerError)
	}
	r := b.Reports
	t.add("reports", r.State, join(fmt.Sprintf("%d pages taken, %d held already, %d refused for good, %d times one for now", r.Taken, r.Held, r.Refused, r.ForNow), r.Last))
	w := b.Writer
	t.add("writer", waiting(w.Waiting), join(fmt.Sprintf("%d events in %d batches, %d reports refused for now", w.Published, w.Batches, w.Refused), w.LastRefused))
	p := b.Apply
	t.add("apply", p.State, join(fmt.Sprintf("through place %d, %d behind, %d unread", p.Place, p.Behind, p.Unread), p.Why))
	users := "the server has them"
	if b.Users.Error != "" {
		users = b.Users.Error
	}
	written, failing := uint64(0), uint64(0)
	for _, k := range b.Config.Keys {
		written, failing = written+k.Written, failing+k.Failing
	}
	t.add("config", waiting(int(failing)), join(fmt.Sprintf("%d values written, %d taken by the rigs, %d refused by them", written, b.Config.Taken, b.Config.Refused), b.Config.Last))
	t.add("users", plural(b.Users.Rigs, "rig"), users)
	return t
}

// plural writes how many of something there are.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// waiting says how many reports wait for the writer.
func waiting(n int) string {
	if n == 0 {
		return "idle"
	}
	return strconv.Itoa(n) + " waiting"
}

// join puts two pieces of a line together, either of which may be empty.
func join(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "; " + second
}

func streamsTable(streams []service.Stream) *table {
	t := &table{header: []string{"STREAM", "MESSAGES", "SIZE", "FIRST", "LAST", "CONSUMER", "TO TAKE", "UNACKED"}}
	for _, s := range streams {
		row := []string{s.Name, count(s.Messages), bytesOf(int64(s.Bytes)), count(s.FirstSeq), count(s.LastSeq)}
		if len(s.Consumers) == 0 {
			t.add(append(row, "-", "", "")...)
		}
		for _, c := range s.Consumers {
			t.add(append(row, c.Name, count(c.Pending), strconv.Itoa(c.Unacked))...)
			row = []string{"", "", "", "", ""}
		}
	}
	return t
}
