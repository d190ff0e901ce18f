package dash

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"thermite/pkg/control/service"
)

const tabLive = "live"

// liveList is live lines as a page shows them, oldest first.
type liveList struct {
	service.LivePage
	// Stream is where what follows comes from.
	Stream string
	// Only is the one source that is shown; empty for all.
	Only string
	// All says that the lines are of many runs.
	All bool
}

type runLivePage struct {
	runFrame
	View liveList
}

// liveOf reads the newest lines, and of one source if the address names one.
func (v *visit) liveOf(q service.LiveQuery, stream string) (liveList, error) {
	page, err := v.d.service.LiveLines(v.r.Context(), v.caller, q)
	if err != nil {
		return liveList{}, err
	}
	list := liveList{LivePage: page, Only: v.r.URL.Query().Get("source"), All: q.Run == "", Stream: stream}
	if list.Next != "" {
		list.Stream += "?after=" + url.QueryEscape(list.Next)
	}
	if list.Only != "" {
		list.Lines = slices.DeleteFunc(list.Lines, func(l service.LiveLine) bool { return l.Source != list.Only })
	}
	return list, nil
}

func (v *visit) showLive(p *problem, status int) error {
	f, err := v.runFrame(tabLive, p)
	if err != nil {
		return err
	}
	f.frame.Live = false // the lines come by themselves
	list, err := v.liveOf(service.LiveQuery{Rig: f.Rig, Run: f.Run.Run}, f.Base()+"/live/stream")
	if err != nil {
		return err
	}
	return v.render("run-live", status, runLivePage{runFrame: f, View: list})
}

type livePage struct {
	frame
	View liveList
}

// live shows what all rigs' agents are doing.
func (d *Dash) live(v *visit) error {
	f, err := v.frame("Live", "live")
	if err != nil {
		return err
	}
	list, err := v.liveOf(service.LiveQuery{}, "/live/stream")
	if err != nil {
		return err
	}
	return v.ok("live", livePage{frame: f, View: list})
}

// liveStream sends lines as they come: a run's, or everyone's.
func (d *Dash) liveStream(v *visit) error {
	q := service.LiveQuery{Rig: v.r.PathValue("rig"), Run: v.r.PathValue("run"), After: v.r.Header.Get("Last-Event-ID")}
	if q.After == "" {
		q.After = v.r.URL.Query().Get("after")
	}
	watch, err := d.service.WatchLive(v.r.Context(), v.caller, q)
	if err != nil {
		return err
	}
	defer watch.Close()
	v.w.Header().Set("Content-Type", service.LiveStreamType)
	control := http.NewResponseController(v.w)
	// A browser that goes, or hangs, is nobody's trouble.
	_ = watch.Stream(v.r.Context(), func(event []byte) error {
		_ = control.SetWriteDeadline(time.Now().Add(service.LiveWriteTimeout))
		if _, err := v.w.Write(event); err != nil {
			return err
		}
		return control.Flush()
	})
	return nil
}
