package service

import (
	"context"
	"errors"
	"fmt"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Daily are the rigs' daily reports.
type Daily interface {
	// List gives the rig's of days before that one (empty: from the newest),
	// the newest first, without their texts.
	List(ctx context.Context, rig, before string, limit int) ([]store.DailyReport, error)
	// Get gives the rig's of the day, or its newest if day is empty; or
	// store.ErrNotFound.
	Get(ctx context.Context, rig, day string) (store.DailyReport, error)
}

// DailySummary is a daily report in the list of a rig's.
type DailySummary struct {
	ID         string    `json:"id" doc:"The report's id" example:"12"`
	Rig        string    `json:"rig" doc:"The rig" example:"workshop"`
	Day        string    `json:"day" doc:"The day that it is of" example:"2026-11-30"`
	Ledger     string    `json:"ledger" doc:"The rig's ledger that it was made from" example:"k5ybdcuhbbfvq2evrb3n2p7u4e"`
	From       wire.Time `json:"from" doc:"It is of the events from this time on"`
	To         wire.Time `json:"to" doc:"and before this one"`
	MadeAt     wire.Time `json:"made_at" doc:"When the rig's supervisor made it"`
	TakenAt    wire.Time `json:"taken_at" doc:"When control took it"`
	Characters int       `json:"characters" doc:"How long it is" example:"1804"`
}

// DailyView is a daily report.
type DailyView struct {
	DailySummary
	Text string `json:"text" doc:"The report, in Markdown"`
}

// DailyList is a page of a rig's daily reports, the newest first.
type DailyList struct {
	Reports []DailySummary `json:"reports" nullable:"false" doc:"The reports, the newest first"`
	Next    string         `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// NewestDay names a rig's newest daily report.
const NewestDay = "newest"

// DailyReports gives a page of a rig's daily reports, the newest first.
func (s *Service) DailyReports(ctx context.Context, c Caller, rig string, q PageQuery) (DailyList, error) {
	list := DailyList{Reports: []DailySummary{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	limit, err := q.limit()
	if err != nil {
		return list, err
	}
	if q.After != "" && !wire.IsDay(q.After) {
		return list, invalid("query.after", errors.New("after must be the next of another page"))
	}
	if _, err := s.rig(ctx, rig); err != nil {
		return list, err
	}
	rows, err := s.config.Daily.List(ctx, rig, q.After, limit+1)
	if err != nil {
		return list, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		list.Next = rows[limit-1].Day
	}
	for _, row := range rows {
		list.Reports = append(list.Reports, dailyOf(row))
	}
	return list, nil
}

// DailyReport gives a rig's report of a day, or its newest one.
func (s *Service) DailyReport(ctx context.Context, c Caller, rig, day string) (DailyView, error) {
	if err := c.Check(MayRead); err != nil {
		return DailyView{}, err
	}
	if day == NewestDay {
		day = ""
	} else if !wire.IsDay(day) {
		return DailyView{}, invalid("path.day", fmt.Errorf("day must be a day such as 2026-11-30, or %s", NewestDay))
	}
	if _, err := s.rig(ctx, rig); err != nil {
		return DailyView{}, err
	}
	row, err := s.config.Daily.Get(ctx, rig, day)
	switch {
	case errors.Is(err, store.ErrNotFound) && day == "":
		return DailyView{}, &Error{Code: CodeNoDaily, Cause: err, Text: fmt.Sprintf("rig %s has sent no daily report yet: the first comes once its first day is over", rig)}
	case errors.Is(err, store.ErrNotFound):
		return DailyView{}, &Error{Code: CodeNoDaily, Cause: err, Text: fmt.Sprintf("control has no report of %s of rig %s", day, rig)}
	case err != nil:
		return DailyView{}, err
	}
	return DailyView{DailySummary: dailyOf(row), Text: row.Text}, nil
}

func dailyOf(d store.DailyReport) DailySummary {
	return DailySummary{ID: idOf(d.ID), Rig: d.Rig, Day: d.Day, Ledger: d.Ledger, From: wire.At(d.From), To: wire.At(d.To), MadeAt: wire.At(d.MadeAt),
		TakenAt: wire.At(d.TakenAt), Characters: d.Characters}
}
