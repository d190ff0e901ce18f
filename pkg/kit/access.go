package kit

import "strings"

// Access is a sign-in to one Git host, by https. Git gets it from its
// environment, when the host asks for it: it is in no argument, no address and
// no file.
type Access struct {
	// Host is the host's name, with its port when that is not 443.
	Host, Username, Secret string
}

// The names in git's environment.
const (
	accessUser   = "KIT_ACCESS_USERNAME"
	accessSecret = "KIT_ACCESS_SECRET"
)

// settings has git ask a helper of the shell's own words for the host, and for
// no other. It comes after the setting that takes away every other helper.
func (a *Access) settings() []string {
	if a == nil {
		return nil
	}
	const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$` + accessUser + `" "$` + accessSecret + `"; }; f`
	return []string{"-c", "credential.https://" + a.Host + ".helper=" + helper}
}

func (a *Access) env() []string {
	if a == nil {
		return nil
	}
	return []string{accessUser + "=" + a.Username, accessSecret + "=" + a.Secret}
}

// hide takes the secret out of what git says, should it say it.
func (a *Access) hide(words string) string {
	if a == nil || a.Secret == "" {
		return words
	}
	return strings.ReplaceAll(words, a.Secret, "(secret)")
}

// String shows no secret.
func (a *Access) String() string { return "access to " + a.Host }

// GoString shows no secret.
func (a *Access) GoString() string { return a.String() }
