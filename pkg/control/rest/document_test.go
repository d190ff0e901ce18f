package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// document gives the served OpenAPI document, as plain JSON.
func document(t *testing.T, w *world) map[string]any {
	t.Helper()
	r := w.do(ask{method: "GET", path: "/v1/openapi.json"})
	if r.status != http.StatusOK || r.header.Get("Content-Type") != "application/json" {
		t.Fatalf("the document is answered with %d %s", r.status, r.header.Get("Content-Type"))
	}
	var doc map[string]any
	if err := json.Unmarshal(r.body, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Promise: the document is OpenAPI 3.1 in its structure: what must be there
// is, every reference leads somewhere, every path parameter is declared, and
// every schema is one of JSON Schema 2020-12.
func TestDocumentIsOpenAPI31(t *testing.T) {
	w := newWorld(t)
	doc := document(t, w)
	if v, _ := doc["openapi"].(string); !strings.HasPrefix(v, "3.1.") {
		t.Errorf("openapi is %q", v)
	}
	info := doc["info"].(map[string]any)
	if info["title"] == "" || info["version"] == "" {
		t.Errorf("info is %v", info)
	}
	c := checker{t, doc}
	c.references(doc, "#")
	ids := map[string]bool{}
	for path, item := range doc["paths"].(map[string]any) {
		if !strings.HasPrefix(path, "/v1/") {
			t.Errorf("path %q is not under /v1/", path)
		}
		for method, op := range item.(map[string]any) {
			c.operation(method+" "+path, path, op.(map[string]any), ids)
		}
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for name, s := range schemas {
		c.schema("schemas."+name, s)
	}
}

type checker struct {
	t   *testing.T
	doc map[string]any
}

// references says of every $ref whether it leads somewhere.
func (c checker) references(v any, where string) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if ref, ok := e.(string); ok && k == "$ref" {
				if c.at(ref) == nil {
					c.t.Errorf("%s: %s leads nowhere", where, ref)
				}
				continue
			}
			c.references(e, where+"/"+k)
		}
	case []any:
		for i, e := range v {
			c.references(e, fmt.Sprintf("%s/%d", where, i))
		}
	}
}

// at gives what a reference leads to.
func (c checker) at(ref string) any {
	var v any = c.doc
	for token := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := v.(map[string]any)
		v = m[token]
	}
	return v
}

var parameter = regexp.MustCompile(`\{([^}]*)\}`)

// operation checks one.
func (c checker) operation(where, path string, op map[string]any, ids map[string]bool) {
	id, _ := op["operationId"].(string)
	switch {
	case id == "" || ids[id]:
		c.t.Errorf("%s: operationId %q is missing or twice", where, id)
	case op["summary"] == nil || op["description"] == nil || op["tags"] == nil || op["security"] == nil:
		c.t.Errorf("%s lacks a summary, a description, a tag or its security", where)
	}
	ids[id] = true
	var declared []string
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		p := p.(map[string]any)
		in, name := p["in"].(string), p["name"].(string)
		if in == "path" {
			declared = append(declared, name)
			if p["required"] != true {
				c.t.Errorf("%s: path parameter %s is not required", where, name)
			}
		}
		if p["description"] == nil {
			c.t.Errorf("%s: parameter %s has no description", where, name)
		}
		c.schema(where+"."+name, p["schema"])
	}
	for _, m := range parameter.FindAllStringSubmatch(path, -1) {
		if !slices.Contains(declared, m[1]) {
			c.t.Errorf("%s: path parameter %s is not declared", where, m[1])
		}
	}
	c.responses(where, op["responses"].(map[string]any))
}

// responses checks that there is a good one, and that each other one is a
// problem.
func (c checker) responses(where string, all map[string]any) {
	good := 0
	for status, r := range all {
		r := r.(map[string]any)
		if r["description"] == nil {
			c.t.Errorf("%s: response %s has no description", where, status)
		}
		content, _ := r["content"].(map[string]any)
		switch {
		case status[0] == '2':
			good++
			if (len(content) == 0) != (status == "204") {
				c.t.Errorf("%s: response %s has the content %v", where, status, content)
			}
		case content["application/problem+json"] == nil:
			c.t.Errorf("%s: response %s is no problem but %v", where, status, slices.Collect(maps.Keys(content)))
		}
	}
	if good != 1 {
		c.t.Errorf("%s has %d good responses", where, good)
	}
	for _, status := range []string{"401", "422", "429", "500", "503"} {
		if all[status] == nil {
			c.t.Errorf("%s does not say that it may answer %s", where, status)
		}
	}
}

// schema checks what JSON Schema 2020-12 says of the keywords that huma
// writes, and that every field has a description.
func (c checker) schema(where string, v any) {
	s, ok := v.(map[string]any)
	if !ok {
		if _, isBool := v.(bool); !isBool {
			c.t.Errorf("%s is no schema: %v", where, v)
		}
		return
	}
	types := []any{"object", "array", "string", "integer", "number", "boolean", "null"}
	switch kind := s["type"].(type) {
	case nil:
	case string:
		if !slices.Contains(types, any(kind)) {
			c.t.Errorf("%s has the type %q", where, kind)
		}
	case []any:
		for _, k := range kind {
			if !slices.Contains(types, k) {
				c.t.Errorf("%s has the type %q", where, k)
			}
		}
	default:
		c.t.Errorf("%s has the type %v", where, kind)
	}
	if s["nullable"] != nil {
		c.t.Errorf("%s has nullable, which 3.1 has not", where)
	}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		if p.(map[string]any)["description"] == nil {
			c.t.Errorf("%s.%s has no description", where, name)
		}
		c.schema(where+"."+name, p)
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if properties[name.(string)] == nil {
			c.t.Errorf("%s requires %v, which it has not", where, name)
		}
	}
	if pattern, ok := s["pattern"].(string); ok {
		if _, err := regexp.Compile(pattern); err != nil {
			c.t.Errorf("%s: %v", where, err)
		}
	}
	if items, ok := s["items"]; ok {
		c.schema(where+"[]", items)
	}
	if more, ok := s["additionalProperties"]; ok {
		c.schema(where+".*", more)
	}
}

// Promise: the page to read needs no other host and no script, its links lead
// somewhere, and it shows every route and type.
func TestDocsPageStandsAlone(t *testing.T) {
	w := newWorld(t)
	r := w.do(ask{method: "GET", path: "/v1/docs"})
	page := string(r.body)
	if r.status != http.StatusOK || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
		t.Fatalf("the page is answered with %d %s", r.status, r.header.Get("Content-Type"))
	}
	if p := r.header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
		t.Errorf("the page's policy is %q", p)
	}
	for _, not := range []string{"<script", "http://", "https://", "style=", " on"} {
		if regexp.MustCompile(`<[^>]*` + regexp.QuoteMeta(not)).MatchString(page) {
			t.Errorf("the page has %q in an element", not)
		}
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("the page has two elements with the id %s", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(` href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !ids[m[1]] {
			t.Errorf("#%s leads nowhere", m[1])
		}
	}
	for path, item := range w.api.Document().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil && !ids[op.OperationID] {
				t.Errorf("the page does not show %s %s", op.Method, path)
			}
		}
	}
	if s := w.do(ask{method: "GET", path: "/v1/docs.css"}); s.status != http.StatusOK || !strings.HasPrefix(s.header.Get("Content-Type"), "text/css") {
		t.Errorf("the style sheet is answered with %d %s", s.status, s.header.Get("Content-Type"))
	}
}
