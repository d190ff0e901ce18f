package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/wire"
)

// defs is where a schema has those of the types it is made of.
const defs = "#/$defs/"

// schemas makes the JSON schemas of the tools' inputs and outputs, from the
// same marks on the types as REST's document is made from.
type schemas struct{ types huma.Registry }

func newSchemas() *schemas {
	names := map[reflect.Type]string{}
	r := huma.NewMapRegistry(defs, func(t reflect.Type, hint string) string {
		name, known := names[t]
		if !known {
			// Several types have one name, each in its own package or function.
			if name = huma.DefaultSchemaNamer(t, hint); slices.Contains(slices.Collect(maps.Values(names)), name) {
				name += strconv.Itoa(len(names))
			}
			names[t] = name
		}
		return name
	})
	r.RegisterTypeAlias(reflect.TypeFor[wire.Time](), reflect.TypeFor[time.Time]())
	r.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[map[string]any]())
	return &schemas{r}
}

// of gives T's schema, for inputs to be looked at, and the same as JSON with
// all that it refers to.
func of[T any](s *schemas) (*huma.Schema, json.RawMessage) {
	// An input type has its schema in place, so that a client that follows no
	// reference reads it; what it is made of is referred to.
	ref := s.types.Schema(reflect.TypeFor[T](), true, "")
	top := ref
	for top.Ref != "" {
		top = s.types.SchemaFromRef(top.Ref)
	}
	whole := asMap(top)
	if whole["properties"] == nil {
		whole["properties"] = map[string]any{}
	}
	used := map[string]any{}
	s.collect(whole, used)
	if len(used) > 0 {
		whole["$defs"] = used
	}
	b, err := json.Marshal(whole)
	if err != nil {
		panic(fmt.Sprintf("writing the schema of %v: %v", reflect.TypeFor[T](), err))
	}
	return top, b
}

// asMap gives a schema as plain JSON.
func asMap(s *huma.Schema) map[string]any {
	b, err := json.Marshal(s)
	m := map[string]any{}
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		panic(fmt.Sprintf("writing a schema: %v", err))
	}
	return tidy(m).(map[string]any)
}

// tidy takes out what only OpenAPI knows: the widths of numbers, words on
// patterns.
func tidy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if f, ok := v["format"].(string); ok && f != "date-time" {
			delete(v, "format")
		}
		if _, isProperty := v["patternDescription"].(string); isProperty {
			delete(v, "patternDescription")
		}
		for k := range maps.Keys(v) {
			v[k] = tidy(v[k])
		}
	case []any:
		for i := range v {
			v[i] = tidy(v[i])
		}
	}
	return v
}

// collect adds what v refers to, and what that does.
func (s *schemas) collect(v any, used map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, defs)
			if _, has := used[name]; !has {
				m := asMap(s.types.SchemaFromRef(ref))
				used[name] = m
				s.collect(m, used)
			}
		}
		for _, of := range v {
			s.collect(of, used)
		}
	case []any:
		for _, of := range v {
			s.collect(of, used)
		}
	}
}
