package dash

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"thermite/pkg/control/service"
)

// cookieName is the cookie that holds the session. The __Host- prefix has the
// browser refuse one that another host or an unsafe page set.
func (d *Dash) cookieName() string {
	if d.options.Plain {
		return "thermite"
	}
	return "__Host-thermite"
}

// setCookie has the browser hold the session until it ends, or drop it.
func (v *visit) setCookie(value string, life time.Duration) {
	c := &http.Cookie{Name: v.d.cookieName(), Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true,
		Secure: !v.d.options.Plain, SameSite: http.SameSiteStrictMode}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.w, c)
}

// who finds who visits by the session's cookie. A session that is over makes
// a stranger.
func (v *visit) who() error {
	v.caller = service.Stranger(v.source)
	c, err := v.r.Cookie(v.d.cookieName())
	if err != nil {
		return v.d.service.CheckStranger(v.source)
	}
	caller, err := v.d.service.SessionCaller(v.r.Context(), c.Value, v.source)
	if e := (*service.Error)(nil); errors.As(err, &e) && e.Code == service.CodeNotSignedIn {
		return v.d.service.CheckStranger(v.source)
	}
	if err != nil {
		return err
	}
	v.caller, v.session = caller, c.Value
	return nil
}

type signInPage struct {
	frame
	Next, Code string
	Problem    *problem
	// Again has the browser ask once more: a link on another site led here,
	// so that it left out the cookie it may hold.
	Again string
}

// signInForm shows the page to sign in with a token, or with a link's code.
// The code is used up only when the person presses the button, so a program
// that looks at links ahead of them does not.
func (d *Dash) signInForm(v *visit) error {
	q := v.r.URL.Query()
	page := signInPage{Next: safeNext(q.Get("next")), Code: q.Get("code")}
	if v.session != "" && page.Code == "" {
		return v.goTo(page.Next)
	}
	if v.r.Header.Get("Sec-Fetch-Site") == "cross-site" && v.session == "" && q.Get("again") == "" {
		q.Set("again", "1")
		page.Again = "/signin?" + q.Encode()
		v.w.Header().Set("Refresh", "0; url="+page.Again)
	}
	return v.showSignIn(http.StatusOK, page)
}

// showSignIn shows the page to sign in.
func (v *visit) showSignIn(status int, page signInPage) error {
	f, err := v.frame("Sign in", "")
	if err != nil {
		return err
	}
	page.frame = f
	return v.render("signin", status, page)
}

// signIn signs the browser in.
func (d *Dash) signIn(v *visit) error {
	page := signInPage{Next: safeNext(v.field("next"))}
	session, err := v.openSession()
	if err != nil {
		var status int
		page.Problem, status = v.problemOf(err)
		return v.showSignIn(status, page)
	}
	v.caller = session.Caller
	v.setCookie(session.Value, service.SessionLife)
	return v.goTo(page.Next)
}

func (v *visit) openSession() (service.Session, error) {
	if code := v.field("code"); code != "" {
		return v.d.service.SignInByCode(v.r.Context(), code, v.source)
	}
	return v.d.service.SignIn(v.r.Context(), strings.TrimSpace(v.field("token")), v.source)
}

// signOut ends the session, here and in the store.
func (d *Dash) signOut(v *visit) error {
	if err := d.service.SignOut(v.r.Context(), v.caller, v.session); err != nil {
		return err
	}
	v.setCookie("", 0)
	return v.goTo("/signin")
}

// safeNext gives the page to show after the sign-in, which is one of ours.
func safeNext(next string) string {
	u, err := url.Parse(next)
	if err != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\x00\r\n\t") ||
		u.Host != "" || u.Scheme != "" || strings.HasPrefix(u.Path, "/signin") {
		return "/"
	}
	return next
}
