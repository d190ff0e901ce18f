package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// scheme is what the resources' addresses start with.
const scheme = "thermite"

// The media types of what a resource holds.
const (
	mediaJSON = "application/json"
	mediaDiff = "text/x-diff"
)

// resource is a kind of resource: its address names one, part by part.
type resource struct {
	name, title, words, template, media string
	// read gives what the one of the parts holds.
	read func(ctx context.Context, c service.Caller, parts []string) (any, error)
}

// resources enters the kinds of resources, and the kits as each is known.
func (m *Server) resources(b *book) {
	for _, r := range m.kinds() {
		b.server.AddResourceTemplate(&sdk.ResourceTemplate{Name: r.name, Title: r.title, Description: r.words, URITemplate: r.template, MIMEType: r.media},
			m.reader(r))
	}
	kits, err := m.service.Kits(context.Background(), service.Caller{Role: b.role, Source: "mcp"})
	if err != nil {
		panic(fmt.Sprintf("the kits that ship: %v", err)) // they are in the binary
	}
	for _, k := range kits.Kits {
		b.server.AddResource(&sdk.Resource{Name: k.Name, Title: "The kit " + k.Name, URI: scheme + "://kits/" + k.Name, MIMEType: mediaJSON,
			Description: k.Title}, m.reader(m.kinds()[kitKind]))
	}
}

// kitKind is the place of the kits among the kinds.
const kitKind = 0

// kinds are the kinds of resources.
func (m *Server) kinds() []resource {
	return []resource{
		kitKind: {name: "kit", title: "A kit", words: "A problem that ships: its statement, steps, metric and fixtures.", template: scheme + "://kits/{kit}", media: mediaJSON,
			read: func(ctx context.Context, c service.Caller, p []string) (any, error) {
				return m.service.Kit(ctx, c, p[0])
			}},
		{name: "run", title: "A run", words: "How far a run is, as the tool run has it.", template: scheme + "://runs/{rig}/{run}", media: mediaJSON,
			read: func(ctx context.Context, c service.Caller, p []string) (any, error) {
				r, err := m.service.ViewRun(ctx, c, service.RunName{Rig: p[0], Run: p[1]}, service.RunQuery{})
				return runOf(r), err
			}},
		{name: "attempt", title: "An attempt", words: "An attempt with its judging, as the tool attempt has it.", template: scheme + "://attempts/{rig}/{run}/{attempt}", media: mediaJSON,
			read: func(ctx context.Context, c service.Caller, p []string) (any, error) {
				n, err := numberOf(p[2])
				if err != nil {
					return nil, err
				}
				a, err := m.service.Attempt(ctx, c, service.RunName{Rig: p[0], Run: p[1]}, n, service.AttemptQuery{})
				return attemptOf(a), err
			}},
		{name: "patch", title: "An attempt's patch", words: "What an attempt changes, as a unified diff: as much of it as control has.", template: scheme + "://patches/{rig}/{run}/{attempt}", media: mediaDiff,
			read: func(ctx context.Context, c service.Caller, p []string) (any, error) {
				n, err := numberOf(p[2])
				if err != nil {
					return nil, err
				}
				patch, err := m.service.Patch(ctx, c, service.RunName{Rig: p[0], Run: p[1]}, n, service.AttemptQuery{})
				return patch.Diff, err
			}},
		{name: "item", title: "An item of the knowledge base", words: "An item with its whole text, and where it came from.", template: scheme + "://items/{id}", media: mediaJSON,
			read: func(ctx context.Context, c service.Caller, p []string) (any, error) {
				return m.service.KBItem(ctx, c, p[0])
			}},
	}
}

// errNoNumber is a part of an address that is no number.
var errNoNumber = errors.New("no number")

func numberOf(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > wire.MaxInteger || strconv.FormatUint(n, 10) != text {
		return 0, errNoNumber
	}
	return n, nil
}

// reader answers reads of the kind of resources.
func (m *Server) reader(r resource) sdk.ResourceHandler {
	want := strings.Count(strings.TrimPrefix(r.template, scheme+"://"), "/")
	return func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		uri := req.Params.URI
		parts, err := partsOf(uri, want)
		if err != nil {
			return nil, sdk.ResourceNotFoundError(uri)
		}
		c := callOf(ctx)
		v, err := r.read(ctx, c.caller, parts)
		if err != nil {
			return nil, m.resourceError(c, uri, err)
		}
		text, is := v.(string)
		if !is {
			b, err := marshal(v)
			if err != nil {
				return nil, m.resourceError(c, uri, err)
			}
			text = string(b)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: r.media, Text: text}}}, nil
	}
}

// partsOf parts a resource's address after its kind.
func partsOf(uri string, want int) ([]string, error) {
	_, rest, _ := strings.Cut(uri, "://")
	parts := strings.Split(rest, "/")[1:]
	if len(parts) != want {
		return nil, errNoNumber
	}
	for i, p := range parts {
		var err error
		if parts[i], err = url.PathUnescape(p); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// resourceError says why a resource could not be read.
func (m *Server) resourceError(c *call, uri string, err error) error {
	e := service.ErrorOf(err)
	switch {
	case errors.Is(err, errNoNumber), e.Kind() == service.KindNotFound:
		return sdk.ResourceNotFoundError(uri)
	case e.Kind() == service.KindInternal:
		m.log.Error("an MCP resource could not be read", "request", c.id, "err", err)
	}
	return errors.New(e.Text)
}
