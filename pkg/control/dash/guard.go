package dash

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"thermite/pkg/control/service"
)

// contentPolicy lets a page use our own stylesheet, script, icon and forms,
// and nothing else from anywhere.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Bounds of what a browser sends.
const (
	maxForm     = 64 << 10
	formTimeout = 15 * time.Second
)

// handler answers a visit, or says why it can't.
type handler func(*visit) error

// visit is one request with who makes it.
type visit struct {
	d      *Dash
	w      http.ResponseWriter
	r      *http.Request
	id     string
	source string
	caller service.Caller
	// session is the cookie's value, if it is good.
	session string
}

// guard is around every request: it sets the headers that every answer has,
// answers a panic and lets no other site make a change.
func (d *Dash) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		defer d.recovered(w, r)
		next.ServeHTTP(w, r)
	})
}

func (d *Dash) recovered(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	d.log.Error("a page panicked", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	http.Error(w, "control failed at this page; its log says why", http.StatusInternalServerError)
}

// page makes a handler of h, for callers who may.
func (d *Dash) page(may service.May, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{d: d, w: w, r: r, id: rand.Text()[:16], source: sourceOf(r.RemoteAddr)}
		w.Header().Set("X-Request-Id", v.id)
		err := v.admit(may)
		if err == nil {
			err = h(v)
		}
		if err != nil {
			v.fail(err)
		}
		if r.Method == http.MethodPost {
			d.log.Info("a change by the dashboard", "request", v.id, "path", r.URL.Path, "role", string(v.caller.Role), "name", v.caller.Name,
				"source", v.source, "failed", err != nil)
		}
	})
}

// admit finds who visits and whether they may. A change must come from one of
// our own pages.
func (v *visit) admit(may service.May) error {
	if err := v.d.origin.Check(v.r); err != nil {
		return &service.Error{Code: service.CodeNotAllowed, Cause: err,
			Text: "this form was sent from another site, so nothing was changed: open the page here and do it again"}
	}
	if err := v.who(); err != nil {
		return err
	}
	if err := v.caller.Check(may); err != nil {
		return err
	}
	if v.r.Method != http.MethodPost {
		return nil
	}
	if err := v.readForm(); err != nil {
		return err
	}
	if may != service.MayAnyone && !service.CheckFormToken(v.session, v.r.PostForm.Get("form")) {
		return &service.Error{Code: service.CodeNotAllowed,
			Text: "this form is of another sign-in, so nothing was changed: load the page again and repeat it"}
	}
	return nil
}

// readForm reads the form's fields.
func (v *visit) readForm() error {
	// A server that can't set a deadline has its own.
	_ = http.NewResponseController(v.w).SetReadDeadline(time.Now().Add(formTimeout))
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return &service.Error{Code: service.CodeMalformed, Text: "what the form sent can't be read", Cause: err}
	}
	return nil
}

// field gives what was typed.
func (v *visit) field(name string) string { return v.r.PostForm.Get(name) }

// goTo leads the browser to one of our pages, with a GET.
func (v *visit) goTo(path string) error {
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

// sourceOf gives the address without its port.
func sourceOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}
