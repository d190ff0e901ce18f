// Package web holds what the dashboard's pages are made of: their templates,
// the stylesheet, the script and the icon. It is data; pkg/control/dash
// serves it.
package web

import "embed"

// Templates are the pages, in templates/: base.html is around every page,
// parts.html is what several share, and each other file is a page.
//
//go:embed templates/*.html
var Templates embed.FS

// Static are the files that a browser loads beside a page, in static/.
//
//go:embed static/*
var Static embed.FS
