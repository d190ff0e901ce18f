package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jmoiron/sqlx"
)

// What a command came to.
const (
	CommandPending    = "pending"
	CommandApplied    = "applied"
	CommandNotApplied = "not_applied"
	CommandRejected   = "rejected"
	CommandExpired    = "expired"
	CommandCancelled  = "cancelled"
)

// Where a command stands with the bus.
const (
	// BusDue is to be published, BusThere was, and BusRemove is to be taken
	// off. BusGone needs nothing more.
	BusDue    = "due"
	BusThere  = "there"
	BusRemove = "remove"
	BusGone   = "gone"
)

// Command is a command as the store has it.
type Command struct {
	// Number is given by the store, and counts up.
	Number                       int64
	ID, Rig, Ledger, Kind, Run   string
	Args                         jsontext.Value
	Signed                       []byte
	Actor                        string
	IssuedAt, ExpiresAt, EndedAt time.Time
	// Request is the idempotency key of who gave it; it may be empty.
	Request string
	// Status is one of the Command constants, Why says it in words, and Made
	// is the number of what it made.
	Status, Why string
	Made        uint64
	// Bus is one of the Bus constants. Held says why the bus did not take it,
	// since HeldSince; empty when it did, or was not asked.
	Bus, Held string
	HeldSince time.Time
}

const commandColumns = `number, id, rig, ledger, kind, run, args, signed, actor, issued_at, expires_at, request, status, why, made, ended_at, bus, held, held_since`

type commandRow struct {
	Number                     int64
	ID, Rig, Ledger, Kind, Run string
	Args                       string
	Signed                     []byte
	Actor                      string
	IssuedAt                   string `db:"issued_at"`
	ExpiresAt                  string `db:"expires_at"`
	Request                    *string
	Status, Why                string
	Made                       uint64
	EndedAt                    *string `db:"ended_at"`
	Bus, Held                  string
	HeldSince                  *string `db:"held_since"`
}

func (w *commandRow) command() (Command, error) {
	c := Command{Number: w.Number, ID: w.ID, Rig: w.Rig, Ledger: w.Ledger, Kind: w.Kind, Run: w.Run, Args: jsontext.Value(w.Args), Signed: w.Signed,
		Actor: w.Actor, Status: w.Status, Why: w.Why, Made: w.Made, Bus: w.Bus, Held: w.Held}
	if w.Request != nil {
		c.Request = *w.Request
	}
	var errs []error
	for _, t := range []struct {
		at *time.Time
		is *string
	}{{&c.IssuedAt, &w.IssuedAt}, {&c.ExpiresAt, &w.ExpiresAt}, {&c.EndedAt, w.EndedAt}, {&c.HeldSince, w.HeldSince}} {
		var err error
		*t.at, err = unstampNull(t.is)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return Command{}, fmt.Errorf("reading command %s from the store: %w", w.ID, err)
	}
	return c, nil
}

func readCommands(ctx context.Context, q sqlx.QueryerContext, rest string, args ...any) ([]Command, error) {
	var rows []commandRow
	if err := sqlx.SelectContext(ctx, q, &rows, `SELECT `+commandColumns+` FROM commands `+rest, args...); err != nil {
		return nil, fmt.Errorf("reading commands: %w", err)
	}
	all := make([]Command, len(rows))
	for i := range rows {
		var err error
		if all[i], err = rows[i].command(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// oneCommand gives the one that the condition names, or ErrNotFound.
func oneCommand(ctx context.Context, q sqlx.QueryerContext, where string, args ...any) (Command, error) {
	all, err := readCommands(ctx, q, where, args...)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("the command: %w", ErrNotFound)
	}
	if err != nil {
		return Command{}, err
	}
	return all[0], nil
}

// AddCommand adds c, and gives its number.
func (s *Store) AddCommand(ctx context.Context, tx *sqlx.Tx, c Command) (number int64, err error) {
	var request *string
	if c.Request != "" {
		request = &c.Request
	}
	res, err := tx.ExecContext(ctx, `INSERT INTO commands (id, rig, ledger, kind, run, args, signed, actor, issued_at, expires_at, request, status, bus)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, c.ID, c.Rig, c.Ledger, c.Kind, c.Run, string(c.Args), c.Signed, c.Actor,
		stamp(c.IssuedAt), stamp(c.ExpiresAt), request, CommandPending, BusDue)
	if err == nil {
		number, err = res.LastInsertId()
	}
	if err != nil {
		return 0, fmt.Errorf("adding the command %s: %w", c.ID, err)
	}
	return number, nil
}

// Command gives the command with that id, or ErrNotFound.
func (s *Store) Command(ctx context.Context, id string) (Command, error) {
	return oneCommand(ctx, s.Read(), `WHERE id = ?`, id)
}

// CommandIn is Command, as tx sees it.
func (s *Store) CommandIn(ctx context.Context, tx *sqlx.Tx, id string) (Command, error) {
	return oneCommand(ctx, tx, `WHERE id = ?`, id)
}

// CommandAsked gives the command that the actor gave with that idempotency
// key, or ErrNotFound.
func (s *Store) CommandAsked(ctx context.Context, tx *sqlx.Tx, actor, request string) (Command, error) {
	return oneCommand(ctx, tx, `WHERE actor = ? AND request = ?`, actor, request)
}

// CommandQuery says which commands to read. The zero value means every one.
type CommandQuery struct {
	// Before gives commands with a lower number only; 0 starts at the newest.
	Before int64
	// Limit is how many at most; 0 is 100.
	Limit int
	// Rig, Run and Status, when not empty, must be the command's.
	Rig, Run, Status string
}

// Commands gives the commands that q asks for, newest first.
func (s *Store) Commands(ctx context.Context, q CommandQuery) ([]Command, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	return readCommands(ctx, s.Read(), `WHERE (?1 = 0 OR number < ?1) AND (?2 = '' OR rig = ?2) AND (?3 = '' OR run = ?3) AND (?4 = '' OR status = ?4)
		ORDER BY number DESC LIMIT ?5`, q.Before, q.Rig, q.Run, q.Status, q.Limit)
}

// CommandsToSend gives the rig's commands that are due to be published or to
// be removed from the bus, the oldest first, at most limit.
func (s *Store) CommandsToSend(ctx context.Context, rig string, limit int) ([]Command, error) {
	return readCommands(ctx, s.Read(), `WHERE rig = ? AND bus IN ('due', 'remove') ORDER BY number LIMIT ?`, rig, limit)
}

// RigsToSend gives the rigs that have such commands, by name.
func (s *Store) RigsToSend(ctx context.Context) (rigs []string, err error) {
	err = s.Read().SelectContext(ctx, &rigs, `SELECT DISTINCT rig FROM commands WHERE bus IN ('due', 'remove') ORDER BY rig`)
	if err != nil {
		return nil, fmt.Errorf("reading which rigs' commands wait for the bus: %w", err)
	}
	return rigs, nil
}

// SendCommandsAgain has every pending command that is in force published
// again, and says how many there are.
func (s *Store) SendCommandsAgain(ctx context.Context, tx *sqlx.Tx, now time.Time) (n int64, err error) {
	res, err := tx.ExecContext(ctx, `UPDATE commands SET bus = 'due' WHERE status = 'pending' AND expires_at > ?`, stamp(now))
	if err == nil {
		n, err = res.RowsAffected()
	}
	if err != nil {
		return 0, fmt.Errorf("having the pending commands published again: %w", err)
	}
	return n, nil
}

// SetCommandBus moves a command from where it stands with the bus to another,
// held no more; moved is false when it does not stand there any longer.
func (s *Store) SetCommandBus(ctx context.Context, tx *sqlx.Tx, id, from, to string) (moved bool, err error) {
	res, err := tx.ExecContext(ctx, `UPDATE commands SET bus = ?, held = '', held_since = NULL WHERE id = ? AND bus = ?`, to, id, from)
	if err != nil {
		return false, fmt.Errorf("writing where the command %s stands with the bus: %w", id, err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// HoldCommands says of all commands of the rig that are due why the bus did
// not take them.
func (s *Store) HoldCommands(ctx context.Context, tx *sqlx.Tx, rig, why string, at time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE commands SET held = ?, held_since = ifnull(held_since, ?) WHERE rig = ? AND bus = 'due' AND status = 'pending'`,
		why, stamp(at), rig)
	if err != nil {
		return fmt.Errorf("holding commands of rig %s: %w", rig, err)
	}
	return nil
}

// HeldCommands is how many commands of a rig wait for the bus.
type HeldCommands struct {
	Count int
	// Why is why the oldest does, and Since since when.
	Why   string
	Since time.Time
}

// CommandsHeld gives how many pending commands of the rig wait for the bus.
func (s *Store) CommandsHeld(ctx context.Context, rig string) (HeldCommands, error) {
	return readHeld(ctx, s.Read(), rig)
}

// CommandsHeldIn is CommandsHeld, as tx sees it.
func (s *Store) CommandsHeldIn(ctx context.Context, tx *sqlx.Tx, rig string) (HeldCommands, error) {
	return readHeld(ctx, tx, rig)
}

func readHeld(ctx context.Context, q sqlx.QueryerContext, rig string) (h HeldCommands, err error) {
	var row struct {
		Count int
		Why   sql.NullString
		Since *string
	}
	const pending = `FROM commands WHERE rig = ?1 AND status = 'pending' AND held <> ''`
	err = sqlx.GetContext(ctx, q, &row, `SELECT count(*) AS count, min(held_since) AS since,
		(SELECT held `+pending+` ORDER BY number LIMIT 1) AS why `+pending, rig)
	if err == nil {
		h.Count, h.Why = row.Count, row.Why.String
		h.Since, err = unstampNull(row.Since)
	}
	if err != nil {
		return HeldCommands{}, fmt.Errorf("reading which commands of rig %s are held: %w", rig, err)
	}
	return h, nil
}

// PendingCommands counts the rig's pending commands.
func (s *Store) PendingCommands(ctx context.Context, tx *sqlx.Tx, rig string) (n int, err error) {
	if err := tx.GetContext(ctx, &n, `SELECT count(*) FROM commands WHERE rig = ? AND status = 'pending'`, rig); err != nil {
		return 0, fmt.Errorf("counting the pending commands of rig %s: %w", rig, err)
	}
	return n, nil
}

// AssignStands says whether the rig has, or may yet get, the run by a
// command.
func (s *Store) AssignStands(ctx context.Context, tx *sqlx.Tx, rig, run, kind string) (stands bool, err error) {
	err = tx.GetContext(ctx, &stands, `SELECT EXISTS (SELECT 1 FROM commands WHERE rig = ? AND run = ? AND kind = ? AND status IN ('pending', 'applied'))`, rig, run, kind)
	if err != nil {
		return false, fmt.Errorf("looking for a command that assigned rig %s the run %s: %w", rig, run, err)
	}
	return stands, nil
}

// EndCommand writes what the command came to, and where it stands with the
// bus from then on.
func (s *Store) EndCommand(ctx context.Context, tx *sqlx.Tx, id, status, why string, made uint64, at time.Time, bus string) error {
	_, err := tx.ExecContext(ctx, `UPDATE commands SET status = ?, why = ?, made = ?, ended_at = ?, bus = ?, held = '', held_since = NULL WHERE id = ?`,
		status, why, made, stamp(at), bus, id)
	if err != nil {
		return fmt.Errorf("writing what the command %s came to: %w", id, err)
	}
	return nil
}

// RenewCommand writes the command as it was signed again.
func (s *Store) RenewCommand(ctx context.Context, tx *sqlx.Tx, id string, signed []byte, expires time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE commands SET signed = ?, expires_at = ? WHERE id = ?`, signed, stamp(expires), id)
	if err != nil {
		return fmt.Errorf("writing the command %s as it was signed again: %w", id, err)
	}
	return nil
}

// CommandsExpired gives the pending commands that expired before then, the
// oldest first: those that the bus did not take, or those that it did.
func (s *Store) CommandsExpired(ctx context.Context, tx *sqlx.Tx, before time.Time, bus string) ([]Command, error) {
	return readCommands(ctx, tx, `WHERE status = 'pending' AND expires_at <= ? AND bus = ? ORDER BY number`, stamp(before), bus)
}

// CurrentLedger gives the rig's current ledger; empty when it reported none.
func (s *Store) CurrentLedger(ctx context.Context, tx *sqlx.Tx, rig string) (ledger string, err error) {
	err = tx.GetContext(ctx, &ledger, `SELECT ledger FROM held WHERE rig = ? ORDER BY number DESC LIMIT 1`, rig)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("reading the current ledger of rig %s: %w", rig, err)
	}
	return ledger, nil
}
