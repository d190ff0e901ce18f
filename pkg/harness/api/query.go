package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"thermite/pkg/wire"
)

// badQuery is the caller's mistake in a query.
func badQuery(format string, args ...any) error {
	return &wire.HarnessProblem{Status: http.StatusBadRequest, Code: wire.CodeBadQuery, Detail: fmt.Sprintf(format, args...)}
}

// parseQuery reads a query that may have the named parameters, each once.
func parseQuery(u *url.URL, may ...string) (map[string]string, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, badQuery("the query can't be read: %v", err)
	}
	got := map[string]string{}
	for name, all := range values {
		switch {
		case !slices.Contains(may, name) && len(may) == 0:
			return nil, badQuery("%s takes no parameters, and got %q", u.Path, clip(name))
		case !slices.Contains(may, name):
			return nil, badQuery("%s has no parameter %q: it takes %s", u.Path, clip(name), strings.Join(may, ", "))
		case len(all) > 1:
			return nil, badQuery("%s is given %d times", name, len(all))
		}
		got[name] = all[0]
	}
	return got, nil
}

// pageQuery reads what a page is asked of: ledger and after must be there,
// and limit is a page's most unless it is.
func pageQuery(u *url.URL) (at wire.Place, limit int, err error) {
	q, err := parseQuery(u, "ledger", "after", "limit")
	if err != nil {
		return at, 0, err
	}
	for _, name := range []string{"ledger", "after"} {
		if _, ok := q[name]; !ok {
			return at, 0, badQuery("%s is missing", name)
		}
	}
	if err := wire.CheckLedger(q["ledger"]); err != nil {
		return at, 0, badQuery("%v", err)
	}
	at.Ledger = q["ledger"]
	if at.Cursor, err = number(q["after"], 0, wire.MaxInteger-wire.MaxPageEvents); err != nil {
		return at, 0, badQuery("after %v", err)
	}
	limit = wire.MaxPageEvents
	if text, ok := q["limit"]; ok {
		n, err := number(text, 1, wire.MaxPageEvents)
		if err != nil {
			return at, 0, badQuery("limit %v", err)
		}
		limit = int(n)
	}
	return at, limit, nil
}

// number reads a decimal number in its one form.
func number(text string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != text || n < least || n > most {
		return 0, fmt.Errorf("%q must be a number from %d to %d", clip(text), least, most)
	}
	return n, nil
}

// clip keeps what a caller sent short enough, and readable, in an answer.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
