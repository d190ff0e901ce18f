package dash

import (
	"html/template"
	"net/url"

	"thermite/pkg/control/service"
)

// daysShown is how many days the list beside a report has.
const daysShown = 31

type dailyPage struct {
	frame
	Rig string
	// Report is the one that is shown; nil when the rig has none.
	Report *service.DailySummary
	HTML   template.HTML
	Days   []service.DailySummary
	Next   string
}

// daily shows a rig's newest daily report, and dailyOf that of a day.
func (d *Dash) daily(v *visit) error { return v.showDaily(service.NewestDay) }

func (d *Dash) dailyOf(v *visit) error { return v.showDaily(v.r.PathValue("day")) }

func (v *visit) showDaily(day string) error {
	rig := v.r.PathValue("rig")
	list, err := v.d.service.DailyReports(v.r.Context(), v.caller, rig, service.PageQuery{Limit: daysShown, After: v.r.URL.Query().Get("after")})
	if err != nil {
		return err
	}
	f, err := v.frame("Daily reports of rig "+rig, "rigs")
	if err != nil {
		return err
	}
	page := dailyPage{frame: f, Rig: rig, Days: list.Reports}
	if list.Next != "" {
		page.Next = "/rigs/" + url.PathEscape(rig) + "/daily?after=" + url.QueryEscape(list.Next)
	}
	report, err := v.d.service.DailyReport(v.r.Context(), v.caller, rig, day)
	switch {
	case err == nil:
		page.Report = &report.DailySummary
		if page.HTML, err = v.d.markdown.html(report.Text); err != nil {
			return err
		}
	case day == service.NewestDay && service.ErrorOf(err).Code == service.CodeNoDaily:
	default:
		return err
	}
	return v.ok("rig-daily", page)
}
