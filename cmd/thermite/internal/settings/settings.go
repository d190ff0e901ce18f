// Package settings finds how the command line reaches control: its address,
// a token, and the authority that signs control's certificate. Each comes
// from a flag, else from THERMITE_*, else from the file; the package says
// which.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"thermite/pkg/files"
)

// FileName is the name of the settings' file in its folder.
const FileName = "client.toml"

// File is what a settings file holds. All of it belongs together: a token is
// sent only to the file's own URL.
type File struct {
	URL   string `toml:"url"`
	Token string `toml:"token,omitempty"`
	// Authority is the path of the authority's certificate, from the file's
	// folder unless it is absolute. Empty: the system's authorities.
	Authority string `toml:"authority,omitempty"`
}

// A Setting is one setting with its value and where it came from.
type Setting struct {
	Name string `json:"name"`
	// Value is empty where nothing gives one, and only "set" for a secret.
	Value string `json:"value"`
	// Source is flag, a variable's name, a file's path, or default.
	Source string `json:"source"`
	Flag   string `json:"flag"`
	Env    string `json:"env"`
	Help   string `json:"help"`
}

// Settings are the resolved ones.
type Settings struct {
	URL       string
	Token     string
	Authority string
	// All lists each setting with its source, the token's value hidden.
	All []Setting
	// Warnings are what a person should know, in words.
	Warnings []string
}

// Flags are what the command line gave; empty where it gave nothing.
type Flags struct{ URL, Token, Authority, Config string }

// Resolve finds the settings. getenv is os.Getenv.
func Resolve(f Flags, getenv func(string) string) (Settings, error) {
	path, source, err := findFile(f.Config, getenv)
	if err != nil {
		return Settings{}, err
	}
	file, warnings, err := readFile(path)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{Warnings: warnings}
	pick := func(name, flag, env, inFile, help string) string {
		set := Setting{Name: name, Flag: "--" + name, Env: env, Help: help, Source: "default"}
		switch {
		case flag != "":
			set.Value, set.Source = flag, "flag"
		case getenv(env) != "":
			set.Value, set.Source = getenv(env), env
		case inFile != "":
			set.Value, set.Source = inFile, path
		}
		value := set.Value
		if name == "token" && value != "" {
			set.Value = "set"
		}
		s.All = append(s.All, set)
		return value
	}
	s.URL = strings.TrimRight(pick("url", f.URL, "THERMITE_URL", file.URL, "control's address"), "/")
	if strings.TrimRight(file.URL, "/") != s.URL {
		if file.Token != "" && f.Token == "" && getenv("THERMITE_TOKEN") == "" {
			s.Warnings = append(s.Warnings, fmt.Sprintf("the token in %s is for %s, so it is not sent to %s; give one with --token or THERMITE_TOKEN",
				path, file.URL, s.URL))
		}
		file.Token, file.Authority = "", ""
	}
	s.Token = pick("token", f.Token, "THERMITE_TOKEN", file.Token, "the owner's token, or a reader's")
	s.Authority = pick("authority", f.Authority, "THERMITE_AUTHORITY", file.Authority, "the certificate of the authority that signs control's; empty: the system's")
	s.All = append(s.All, Setting{Name: "config", Value: path, Source: source, Flag: "--config", Env: "THERMITE_CONFIG",
		Help: "the file the others are read from"})
	return s, nil
}

// CheckURL says what is wrong with control's address.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("control's address is %q: write it as https://host:8443", address)
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return fmt.Errorf("control's address is %q: use https; http would send the token in the clear", address)
	}
	return nil
}

// findFile gives the file's path and where that path came from. The path is
// empty if there is none.
func findFile(flag string, getenv func(string) string) (path, source string, err error) {
	named, source := flag, "flag"
	if named == "" {
		named, source = getenv("THERMITE_CONFIG"), "THERMITE_CONFIG"
	}
	if named != "" {
		if _, err := os.Stat(named); err != nil {
			return "", "", fmt.Errorf("reading the settings file that %s names: %w", strings.Replace(source, "flag", "--config", 1), err)
		}
		return named, source, nil
	}
	for _, path := range []string{ConfigPath(getenv), UpPath(getenv)} {
		if _, err := os.Stat(path); err == nil {
			return path, "default", nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", "", fmt.Errorf("reading the settings file: %w", err)
		}
	}
	return "", "default", nil
}

// ConfigPath is where a person keeps the settings file.
func ConfigPath(getenv func(string) string) string {
	return filepath.Join(xdg(getenv, "XDG_CONFIG_HOME", ".config"), "thermite", FileName)
}

// UpPath is where thermite up leaves one, so that a second terminal works as
// it is.
func UpPath(getenv func(string) string) string {
	return filepath.Join(UpDir(getenv), FileName)
}

// RootUpDir is where thermite up keeps everything for root: the users of its
// rig's roles can't enter root's home.
const RootUpDir = "/var/lib/thermite"

// UpDir is the folder where thermite up keeps everything, unless told.
func UpDir(getenv func(string) string) string {
	if os.Geteuid() == 0 && !filepath.IsAbs(getenv("XDG_STATE_HOME")) {
		return RootUpDir
	}
	return filepath.Join(xdg(getenv, "XDG_STATE_HOME", filepath.Join(".local", "state")), "thermite", "up")
}

func xdg(getenv func(string) string, name, under string) string {
	if dir := getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(getenv("HOME"), under)
}

// readFile reads the file, and gives the zero File for no path.
func readFile(path string) (f File, warnings []string, err error) {
	if path == "" {
		return File{}, nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return File{}, nil, fmt.Errorf("reading the settings file: %w", err)
	}
	meta, err := toml.NewDecoder(bytes.NewReader(b)).Decode(&f)
	if err != nil {
		return File{}, nil, fmt.Errorf("reading the settings file %s: %w", path, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return File{}, nil, fmt.Errorf("reading the settings file %s: it has no setting %q; it may have url, token and authority", path, unknown[0])
	}
	if f.URL == "" && (f.Token != "" || f.Authority != "") {
		return File{}, nil, fmt.Errorf("reading the settings file %s: it has no url, which its token and authority are for", path)
	}
	if f.Authority != "" && !filepath.IsAbs(f.Authority) {
		f.Authority = filepath.Join(filepath.Dir(path), f.Authority)
	}
	info, err := os.Stat(path)
	if err == nil && f.Token != "" && info.Mode().Perm()&0o077 != 0 {
		warnings = append(warnings, fmt.Sprintf("others on this machine may read the token in %s; keep it to yourself: chmod 600 %s", path, path))
	}
	return f, warnings, nil
}

// WriteFile writes a settings file that only its owner may read, whole or
// not at all.
func WriteFile(path string, f File) error {
	b, err := toml.Marshal(f)
	if err != nil {
		return fmt.Errorf("writing the settings file %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing the settings file: %w", err)
	}
	if err := files.Write(path, b, 0o600); err != nil {
		return fmt.Errorf("writing the settings file: %w", err)
	}
	return nil
}
