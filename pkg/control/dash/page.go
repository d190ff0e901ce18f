package dash

import (
	"bytes"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"thermite/pkg/control/service"
)

// frame is what is around every page.
type frame struct {
	Title string
	// Section is the page's place in the navigation.
	Section string
	Caller  service.Caller
	// Signed says that someone is signed in, Owner that they may change.
	Signed, Owner bool
	// Form is the token that each form carries.
	Form   string
	Needs  int
	Health service.Health
	Now    time.Time
	// Live has the script ask for the page again and again.
	Live bool
}

// bareFrame is the frame for nobody.
func (v *visit) bareFrame(title string) frame {
	return frame{Title: title, Caller: v.caller}
}

// frame gives the frame of a page for who visits.
func (v *visit) frame(title, section string) (frame, error) {
	f := v.bareFrame(title)
	f.Section = section
	health, err := v.d.service.Health(v.r.Context(), v.caller)
	if err != nil {
		return f, err
	}
	f.Health, f.Now = health, health.Now.Time()
	if v.caller.Check(service.MayRead) != nil {
		return f, nil
	}
	needs, err := v.d.service.Needs(v.r.Context(), v.caller)
	if err != nil {
		return f, err
	}
	f.Signed, f.Needs, f.Form = true, len(needs.Needs), service.FormToken(v.session)
	f.Owner = service.MayChange.Allowed(v.caller.Role)
	return f, nil
}

// liveHeader marks the script's requests.
const liveHeader = "Thermite-Live"

// live says that the page's own script asks, to show what changed.
func (v *visit) live() bool { return v.r.Header.Get(liveHeader) != "" }

// render answers with a page. A page that can't be made is an error, not a
// part of a page.
func (v *visit) render(name string, status int, data any) error {
	t := v.d.pages[name]
	if t == nil {
		return fmt.Errorf("there is no page %s", name)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "base.html", data); err != nil {
		v.d.log.Error("a page could not be made", "request", v.id, "page", name, "err", err)
		http.Error(v.w, "control failed at this page; its log says why, under "+v.id, http.StatusInternalServerError)
		return nil
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes())
	return nil
}

// ok answers with a page.
func (v *visit) ok(name string, data any) error { return v.render(name, http.StatusOK, data) }

// pageName is the name of the page in a template's file.
func pageName(file string) string { return strings.TrimSuffix(path.Base(file), ".html") }
