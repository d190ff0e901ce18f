package wire

import "fmt"

// SpaceRemove has a rig remove what it keeps of the kinds, of no run that is
// open and of no champion. What can be made again is made again when it is
// needed.
type SpaceRemove struct {
	// Kinds are some of SpaceKinds.
	Kinds []string `json:"kinds"`
	// Run, if given, is the only run whose things go.
	Run string `json:"run,omitzero"`
	// Before, if given, has only what was used last before it go.
	Before Time   `json:"before,omitzero"`
	Why    string `json:"why,omitzero"`
}

// Command implements Arguments.
func (SpaceRemove) Command() string { return CommandSpaceRemove }

// RunName implements Arguments.
func (a SpaceRemove) RunName() string { return a.Run }

// Check implements Arguments.
func (a SpaceRemove) Check() error {
	if len(a.Kinds) == 0 || len(a.Kinds) > len(SpaceKinds) {
		return fmt.Errorf("kinds has %d entries, where it may have 1 to %d", len(a.Kinds), len(SpaceKinds))
	}
	seen := map[string]bool{}
	for _, kind := range a.Kinds {
		if err := oneOf("kinds", kind, SpaceKinds); err != nil {
			return err
		}
		if seen[kind] {
			return fmt.Errorf("kinds names %s twice", kind)
		}
		seen[kind] = true
	}
	if a.Run != "" {
		if err := CheckName("run", a.Run); err != nil {
			return err
		}
	}
	return atMost("why", a.Why, maxWhy)
}

// Wants says whether the command is about the item, and may remove it.
func (a SpaceRemove) Wants(i SpaceItem) bool {
	if !i.Removable() || a.Run != "" && a.Run != i.Run || !a.Before.IsZero() && !i.At.Time().Before(a.Before.Time()) {
		return false
	}
	for _, kind := range a.Kinds {
		if kind == i.Kind {
			return true
		}
	}
	return false
}

// SpaceRemoved is what a space.remove removed: the body of its event.
type SpaceRemoved struct {
	// Command is the command's id.
	Command string `json:"command"`
	Why     string `json:"why,omitzero"`
	// Items are the largest of what is gone, at most MaxSpaceGone; More counts
	// the others. Bytes is what all of it took.
	Items []SpaceItem `json:"items,omitzero"`
	More  uint64      `json:"more,omitzero"`
	Bytes uint64      `json:"bytes"`
}

// Kind implements Body.
func (SpaceRemoved) Kind() string { return KindSpaceRemoved }

// Check implements Body.
func (b SpaceRemoved) Check() error {
	if !IsCommandID(b.Command) {
		return fmt.Errorf("command %q is no command's id", clip(b.Command))
	}
	if len(b.Items) > MaxSpaceGone {
		return fmt.Errorf("items has %d entries, at most %d", len(b.Items), MaxSpaceGone)
	}
	for n, i := range b.Items {
		if err := i.Check(); err != nil {
			return fmt.Errorf("items[%d].%w", n, err)
		}
	}
	return first(atMost("why", b.Why, maxWhy), count("more", b.More), count("bytes", b.Bytes))
}

// NewSpaceRemoved gives the body for what is gone.
func NewSpaceRemoved(command, why string, gone []SpaceItem) SpaceRemoved {
	r := NewSpaceReport("", Time{}, gone)
	b := SpaceRemoved{Command: command, Why: why, Items: r.Items[:min(len(r.Items), MaxSpaceGone)]}
	b.More = uint64(len(gone) - len(b.Items))
	for _, i := range gone {
		b.Bytes += i.Bytes
	}
	return b
}
