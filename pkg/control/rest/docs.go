package rest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"thermite/pkg/control/service"
)

// paragraphs parts a text at its empty lines.
func paragraphs(text string) []string { return strings.Split(text, "\n\n") }

// shownTags gives the routes by tag, in the document's order of tags.
func shownTags(doc *huma.OpenAPI) []shownTag {
	list := make([]shownTag, len(doc.Tags))
	for i, tag := range doc.Tags {
		list[i] = shownTag{Name: tag.Name, Description: tag.Description}
		for _, op := range operations(doc) {
			if slices.Contains(op.Tags, tag.Name) {
				list[i].Routes = append(list[i].Routes, shownOf(op))
			}
		}
	}
	return list
}

// operations gives every operation, by path and method.
func operations(doc *huma.OpenAPI) []*huma.Operation {
	var list []*huma.Operation
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		p := doc.Paths[path]
		for _, op := range []*huma.Operation{p.Get, p.Post, p.Put, p.Patch, p.Delete} {
			if op != nil {
				list = append(list, op)
			}
		}
	}
	return list
}

func shownOf(op *huma.Operation) shownRoute {
	r := shownRoute{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Description, Who: who(op)}
	for _, p := range op.Parameters {
		f := shownType(p.Schema)
		f.Name, f.In, f.Required = p.Name, p.In, p.Required
		if p.Description != "" {
			f.Doc = p.Description
		}
		r.Params = append(r.Params, f)
	}
	if op.RequestBody != nil {
		f := shownType(op.RequestBody.Content[mediaJSON].Schema)
		r.Body = &f
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		answer := op.Responses[status]
		if strings.HasPrefix(status, "2") {
			r.Status = status
			if c := answer.Content[mediaJSON]; c != nil {
				f := shownType(c.Schema)
				r.Answer = &f
			}
			continue
		}
		r.Errors = append(r.Errors, status)
	}
	return r
}

// who says in words who may call.
func who(op *huma.Operation) string {
	switch op.Metadata[metaMay] {
	case service.MayAnyone:
		return "anyone"
	case service.MayRead:
		return "the owner and readers"
	case service.MayChange:
		return "the owner"
	default:
		return "the rig itself"
	}
}

// shownType writes a schema as one line, with the type to look further at.
func shownType(s *huma.Schema) shownField {
	f := shownField{Doc: s.Description}
	switch {
	case s.Ref != "":
		f.Ref = s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		f.Type = f.Ref
	case s.Type == huma.TypeArray && s.Items != nil:
		item := shownType(s.Items)
		f.Ref, f.Type = item.Ref, "list of "+item.Type
	case s.Type == huma.TypeObject:
		f.Type = "object"
		if item, ok := s.AdditionalProperties.(*huma.Schema); ok {
			of := shownType(item)
			f.Ref, f.Type = of.Ref, "object of "+of.Type
		}
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			words[i] = fmt.Sprint(e)
		}
		f.Type = strings.Join(words, " | ")
	case s.Format == "date-time":
		f.Type = "time"
	case s.Type == "":
		f.Type = "any"
	default:
		f.Type = s.Type
	}
	return f
}

// shownSchemas gives every type that the routes name, by name.
func shownSchemas(doc *huma.OpenAPI) []shownSchema {
	all := doc.Components.Schemas.Map()
	var list []shownSchema
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := shownSchema{Name: name}
		for _, field := range slices.Sorted(maps.Keys(all[name].Properties)) {
			f := shownType(all[name].Properties[field])
			f.Name, f.Required = field, slices.Contains(all[name].Required, field)
			s.Fields = append(s.Fields, f)
		}
		list = append(list, s)
	}
	return list
}

// shownCode is a code of a problem on the page.
type shownCode struct {
	Code, Means string
	Status      int
}

// shownCodes gives every code, by name.
func shownCodes() []shownCode {
	all := service.Codes()
	var list []shownCode
	for _, code := range slices.Sorted(maps.Keys(all)) {
		list = append(list, shownCode{string(code), all[code].Means, statuses[all[code].Kind]})
	}
	return list
}
