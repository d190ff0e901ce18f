package dash

import (
	"net/http"
	"net/url"
	"strconv"

	"thermite/pkg/control/service"
)

// statuses are the kinds' statuses.
var statuses = map[service.Kind]int{
	service.KindInvalid: http.StatusUnprocessableEntity, service.KindMalformed: http.StatusBadRequest, service.KindSlow: http.StatusRequestTimeout,
	service.KindNotSignedIn: http.StatusUnauthorized, service.KindNotAllowed: http.StatusForbidden, service.KindNotFound: http.StatusNotFound,
	service.KindConflict: http.StatusConflict, service.KindTooLarge: http.StatusRequestEntityTooLarge, service.KindMethod: http.StatusMethodNotAllowed,
	service.KindTooMany: http.StatusTooManyRequests, service.KindUnavailable: http.StatusServiceUnavailable,
}

func statusOf(e *service.Error) int {
	if status, ok := statuses[e.Kind()]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// problem is an error as a page shows it.
type problem struct {
	Text string
	// Request is the request's id, for an error that only the log explains.
	Request string
}

// problemOf says err on a page, and in the log what the page must not say.
func (v *visit) problemOf(err error) (*problem, int) {
	e := service.ErrorOf(err)
	p := &problem{Text: e.Text}
	if e.Kind() == service.KindInternal && v.r.Context().Err() == nil {
		p.Request = v.id
		v.d.log.Error("a page failed", "request", v.id, "path", v.r.URL.Path, "err", err)
	}
	if e.RetryAfter > 0 {
		v.w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds()+0.999)))
	}
	return p, statusOf(e)
}

type errorPage struct {
	frame
	Problem *problem
	Status  int
}

// fail answers with the error. One that signing in mends leads there.
func (v *visit) fail(err error) {
	e := service.ErrorOf(err)
	if e.Code == service.CodeNotSignedIn && (v.r.Method == http.MethodGet || v.r.Method == http.MethodHead) && !v.live() {
		_ = v.goTo("/signin?next=" + url.QueryEscape(v.r.URL.RequestURI()))
		return
	}
	p, status := v.problemOf(err)
	page := errorPage{frame: v.bareFrame(http.StatusText(status)), Problem: p, Status: status}
	if f, err := v.frame(http.StatusText(status), ""); err == nil {
		page.frame = f
	}
	_ = v.render("error", status, page)
}

// noPage answers for an address that is no page of ours.
func noPage(v *visit) error {
	return &service.Error{Code: service.CodeNoRoute, Text: "there is no page at this address"}
}
