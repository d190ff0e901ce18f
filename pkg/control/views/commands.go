package views

import (
	"slices"

	"thermite/pkg/wire"
)

// mostCommands is how many commands a view shows.
const mostCommands = 100

// command keeps what came of a command, if the event says so.
func (f *fold) command(e wire.Event) error {
	switch e.Kind {
	case wire.KindCommand:
		return on(e, func(b wire.CommandTaken) {
			f.keepCommand(Command{ID: b.ID, Command: b.Command, Outcome: b.Outcome, Why: b.Why, Number: b.Number}, e.Run)
		})
	case wire.KindCommandRejected:
		return on(e, func(b wire.CommandRejected) {
			f.keepCommand(Command{ID: b.ID, Command: b.Command, Outcome: wire.CommandIsRejected, Why: b.Why}, e.Run)
		})
	}
	return nil
}

func (f *fold) keepCommand(c Command, run string) {
	c.Mark, c.Run = f.last, run
	f.commands = keepNewest(f.commands, c, mostCommands)
}

// keepNewest adds to a list, oldest first, that keeps the newest. It makes
// room for as many again before it moves them.
func keepNewest[T any](list []T, v T, most int) []T {
	if len(list) >= 2*most {
		list = append(list[:0], list[len(list)-most:]...)
	}
	return append(list, v)
}

// newestOf gives the list's newest, at most that many, the newest first.
func newestOf[T any](list []T, most int) []T {
	newest := append(make([]T, 0, min(len(list), most)), list[max(0, len(list)-most):]...)
	slices.Reverse(newest)
	return newest
}
