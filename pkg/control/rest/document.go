package rest

import (
	"bytes"
	_ "embed" // the page's files
	"encoding/json"
	"html/template"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsPage string

//go:embed docs.css
var docsStyle []byte

// documentRoutes serve the OpenAPI document and a page to read it, to anyone.
// Both are made at the first call, once every route is there.
func (a *API) documentRoutes() {
	a.static("/v1/openapi.json", "application/json", "", func() ([]byte, error) { return json.Marshal(a.huma.OpenAPI()) })
	a.static("/v1/docs", "text/html; charset=utf-8", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		func() ([]byte, error) { return renderDocs(a.huma.OpenAPI()) })
	a.static("/v1/docs.css", "text/css; charset=utf-8", "", func() ([]byte, error) { return docsStyle, nil })
}

// static serves what build gives, which never changes.
func (a *API) static(path, kind, policy string, build func() ([]byte, error)) {
	once := sync.OnceValues(build)
	a.methods[path] = append(a.methods[path], http.MethodGet)
	a.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		call := callOf(r.Context())
		call.route = path
		err := a.service.CheckStranger(call.source)
		var b []byte
		if err == nil {
			b, err = once()
		}
		if err != nil {
			a.write(w, r, err)
			return
		}
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Cache-Control", "no-cache")
		if policy != "" {
			h.Set("Content-Security-Policy", policy)
		}
		if r.Method != http.MethodHead {
			_, _ = w.Write(b)
		}
	})
}

// shownSchema is a type on the page.
type shownSchema struct {
	Name   string
	Fields []shownField
}

// shownField is a field or a parameter on the page.
type shownField struct {
	Name, Type, In, Doc string
	Ref                 string
	Required            bool
}

// shownRoute is a route on the page.
type shownRoute struct {
	ID, Method, Path, Summary, Description, Who string
	Params                                      []shownField
	Body, Answer                                *shownField
	Status                                      string
	Errors                                      []string
}

// shownTag is a part of the page.
type shownTag struct {
	Name, Description string
	Routes            []shownRoute
}

var docsTemplate = template.Must(template.New("docs").Parse(docsPage))

// renderDocs makes the page.
func renderDocs(doc *huma.OpenAPI) ([]byte, error) {
	var b bytes.Buffer
	err := docsTemplate.Execute(&b, struct {
		Title      string
		Paragraphs []string
		Tags       []shownTag
		Codes      []shownCode
		Schemas    []shownSchema
	}{doc.Info.Title, paragraphs(doc.Info.Description), shownTags(doc), shownCodes(), shownSchemas(doc)})
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
