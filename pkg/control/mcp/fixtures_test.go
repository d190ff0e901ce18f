//go:build clients

package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the conformance suite looks for: a picture and a sound, as small as
// they can be.
var (
	picture = mustDecode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	sound   = mustDecode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
)

func mustDecode(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

// enterFixtures enters what the conformance suite calls, by its names.
func enterFixtures(s *sdk.Server) {
	embedded := func(uri string) sdk.Content {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource"}}
	}
	image := &sdk.ImageContent{Data: picture, MIMEType: "image/png"}
	for name, content := range map[string][]sdk.Content{
		"test_simple_text":            {&sdk.TextContent{Text: "This is a simple text response for testing."}},
		"test_image_content":          {image},
		"test_audio_content":          {&sdk.AudioContent{Data: sound, MIMEType: "audio/wav"}},
		"test_embedded_resource":      {embedded("test://embedded-resource")},
		"test_multiple_content_types": {&sdk.TextContent{Text: "This is text content"}, image, embedded("test://embedded-in-multiple")},
	} {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "A fixture of the conformance suite"},
			func(context.Context, *sdk.CallToolRequest, any) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{Content: content}, nil, nil
			})
	}
	sdk.AddTool(s, &sdk.Tool{Name: "test_error_handling", Description: "A fixture of the conformance suite"},
		func(context.Context, *sdk.CallToolRequest, any) (*sdk.CallToolResult, any, error) {
			return nil, nil, errors.New("this tool intentionally returns an error for testing")
		})
	s.AddTool(&sdk.Tool{Name: "json_schema_2020_12_tool", Description: "A fixture of the conformance suite", InputSchema: json.RawMessage(schema2020)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "JSON Schema 2020-12 tool called"}}}, nil
		})
	resourceFixtures(s)
	promptFixtures(s)
}

const schema2020 = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]}, "else": {"required": ["email"]},
	"additionalProperties": false
}`

func resourceFixtures(s *sdk.Server) {
	as := func(c sdk.ResourceContents) sdk.ResourceHandler {
		return func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			c.URI = r.Params.URI
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&c}}, nil
		}
	}
	s.AddResource(&sdk.Resource{Name: "static-text", Description: "A fixture", MIMEType: "text/plain", URI: "test://static-text"},
		as(sdk.ResourceContents{MIMEType: "text/plain", Text: "This is the content of the static text resource."}))
	s.AddResource(&sdk.Resource{Name: "static-binary", Description: "A fixture", MIMEType: "image/png", URI: "test://static-binary"},
		as(sdk.ResourceContents{MIMEType: "image/png", Blob: picture}))
	id := regexp.MustCompile(`^test://template/([^/]*)/data$`)
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", Description: "A fixture", MIMEType: "application/json", URITemplate: "test://template/{id}/data"},
		func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			is := id.FindStringSubmatch(r.Params.URI)
			if is == nil {
				return nil, sdk.ResourceNotFoundError(r.Params.URI)
			}
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json",
				Text: fmt.Sprintf(`{"id": %q, "templateTest": true, "data": "Data for ID: %s"}`, is[1], is[1])}}}, nil
		})
}

func promptFixtures(s *sdk.Server) {
	say := func(contents ...sdk.Content) *sdk.GetPromptResult {
		r := &sdk.GetPromptResult{Description: "A fixture"}
		for _, c := range contents {
			r.Messages = append(r.Messages, &sdk.PromptMessage{Role: "user", Content: c})
		}
		return r
	}
	add := func(name string, args []string, do func(map[string]string) *sdk.GetPromptResult) {
		p := &sdk.Prompt{Name: name, Description: "A fixture"}
		for _, a := range args {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: a, Description: "An argument", Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return do(r.Params.Arguments), nil
		})
	}
	add("test_simple_prompt", nil, func(map[string]string) *sdk.GetPromptResult {
		return say(&sdk.TextContent{Text: "This is a simple prompt for testing."})
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) *sdk.GetPromptResult {
		return say(&sdk.TextContent{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])})
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) *sdk.GetPromptResult {
		return say(&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}},
			&sdk.TextContent{Text: "Please process the embedded resource above."})
	})
	add("test_prompt_with_image", nil, func(map[string]string) *sdk.GetPromptResult {
		return say(&sdk.ImageContent{Data: picture, MIMEType: "image/png"}, &sdk.TextContent{Text: "Please analyze the image above."})
	})
}
