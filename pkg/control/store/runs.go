package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Where a run in the registry comes from.
const (
	RunAssigned = "assigned"
	RunMade     = "made"
)

// Run is a run in control's run registry: one that a rig holds. Two rigs may
// each hold one of the same name.
type Run struct {
	Run, Rig string
	// Origin is RunAssigned, by control, or RunMade, on the rig.
	Origin    string
	Campaign  string
	CreatedAt time.Time
	// Number is given by the store, and counts up.
	Number uint64
}

// runColumns are a run's, as runRow has them.
const runColumns = `run, rig, origin, campaign, created_at, number`

type runRow struct {
	Run, Rig, Origin, Campaign string
	CreatedAt                  string `db:"created_at"`
	Number                     uint64
}

func readRuns(ctx context.Context, q sqlx.QueryerContext, rest string, args ...any) ([]Run, error) {
	var rows []runRow
	if err := sqlx.SelectContext(ctx, q, &rows, `SELECT `+runColumns+` FROM runs `+rest, args...); err != nil {
		return nil, fmt.Errorf("reading the run registry: %w", err)
	}
	runs := make([]Run, len(rows))
	for i, r := range rows {
		at, err := unstamp(r.CreatedAt)
		if err != nil {
			return nil, fmt.Errorf("reading run %s of rig %s: %w", r.Run, r.Rig, err)
		}
		runs[i] = Run{Run: r.Run, Rig: r.Rig, Origin: r.Origin, Campaign: r.Campaign, CreatedAt: at, Number: r.Number}
	}
	return runs, nil
}

// Runs gives the whole run registry, the oldest entry first.
func (s *Store) Runs(ctx context.Context) ([]Run, error) {
	return readRuns(ctx, s.Read(), `ORDER BY number`)
}

// RunsNamed gives the runs of that name, as tx sees them.
func (s *Store) RunsNamed(ctx context.Context, tx *sqlx.Tx, run string) ([]Run, error) {
	return readRuns(ctx, tx, `WHERE run = ? ORDER BY number`, run)
}

// SetRun writes the run; a new one, or one whose number is 0, becomes the
// newest. It gives the run as it is kept.
func (s *Store) SetRun(ctx context.Context, tx *sqlx.Tx, r Run) (Run, error) {
	if r.Number == 0 {
		if err := tx.GetContext(ctx, &r.Number, `SELECT ifnull(max(number), 0) + 1 FROM runs`); err != nil {
			return Run{}, fmt.Errorf("writing run %s of rig %s: %w", r.Run, r.Rig, err)
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO runs (`+runColumns+`) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run, rig)
		DO UPDATE SET origin = excluded.origin, campaign = excluded.campaign, created_at = excluded.created_at, number = excluded.number`,
		r.Run, r.Rig, r.Origin, r.Campaign, stamp(r.CreatedAt), r.Number)
	if err != nil {
		return Run{}, fmt.Errorf("writing run %s of rig %s: %w", r.Run, r.Rig, err)
	}
	return r, nil
}

// CampaignKnown says whether control knows a campaign of that name apart from
// the rig's own: one of control's, or one that a run assigned by control or a
// run of another rig is in.
func (s *Store) CampaignKnown(ctx context.Context, tx *sqlx.Tx, campaign, rig string) (known bool, err error) {
	err = tx.GetContext(ctx, &known, `SELECT EXISTS (SELECT 1 FROM campaigns WHERE name = ?1)
		OR EXISTS (SELECT 1 FROM runs WHERE campaign = ?1 AND (rig <> ?2 OR origin = 'assigned'))`, campaign, rig)
	if err != nil {
		return false, fmt.Errorf("looking for the campaign %s: %w", campaign, err)
	}
	return known, nil
}

// AddCampaign adds a campaign of control's own, if it is not there.
func (s *Store) AddCampaign(ctx context.Context, tx *sqlx.Tx, name string, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO campaigns (name, created_at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`, name, stamp(at))
	if err != nil {
		return fmt.Errorf("adding the campaign %s: %w", name, err)
	}
	return nil
}
