package main

import (
	"crypto/x509"
	"fmt"
	"os"

	"thermite/cmd/thermite/internal/client"
	"thermite/cmd/thermite/internal/settings"
)

// connect makes the client of the control that the settings name.
func (a *app) connect() (*client.Client, error) {
	s, err := settings.Resolve(a.flags, a.getenv)
	if err != nil {
		return nil, useError{err}
	}
	for _, warning := range s.Warnings {
		a.warn("note: %s", warning)
	}
	if s.URL == "" {
		return nil, wrongUse("no control is named\n" +
			"Start one here with thermite up, or name one with --url or THERMITE_URL.")
	}
	if err := settings.CheckURL(s.URL); err != nil {
		return nil, useError{err}
	}
	pool, err := authority(s.Authority)
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{URL: s.URL, Token: s.Token, Authority: pool, Version: version}), nil
}

// authority reads the certificates that control's may be signed by; nil are
// the system's.
func authority(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, useError{fmt.Errorf("reading the authority: %w", err)}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, wrongUse("reading the authority: %s holds no certificate in PEM", path)
	}
	return pool, nil
}
