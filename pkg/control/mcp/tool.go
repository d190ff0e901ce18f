package mcp

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"thermite/pkg/control/service"
)

// book is where the tools of callers of one role are entered.
type book struct {
	server *sdk.Server
	m      *Server
	role   service.Role
}

// tool is what a client may call.
type tool struct {
	name, title, words string
	// changes says that it changes something; ends that this can't be undone,
	// and again that doing it twice is doing it once.
	changes, ends, again bool
}

// add enters a tool whose answers do gives. In's and Out's marks are its
// schemas; a caller who may not call it is not shown it.
func add[In, Out any](b *book, t tool, do func(context.Context, service.Caller, In) (Out, error)) {
	may := service.MayRead
	if t.changes {
		may = service.MayChange
	}
	if !may.Allowed(b.role) {
		return
	}
	no := false
	notes := &sdk.ToolAnnotations{Title: t.title, ReadOnlyHint: !t.changes, OpenWorldHint: &no, IdempotentHint: t.again || !t.changes}
	if t.changes {
		notes.DestructiveHint = &t.ends
	}
	in, inJSON := of[In](b.m.schemas)
	_, outJSON := of[Out](b.m.schemas)
	b.server.AddTool(&sdk.Tool{Name: t.name, Title: t.title, Description: t.words, Annotations: notes, InputSchema: inJSON, OutputSchema: outJSON},
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			c, start := callOf(ctx), time.Now()
			out, err := runTool(ctx, b.m.schemas, in, r.Params.Arguments, c.caller, do)
			b.m.logCall(c, t, start, err)
			if err != nil {
				return b.m.toolError(c, t, err), nil
			}
			return result(out)
		})
}

// runTool reads a tool's input and calls it.
func runTool[In, Out any](ctx context.Context, s *schemas, schema *huma.Schema, raw []byte, c service.Caller,
	do func(context.Context, service.Caller, In) (Out, error)) (out Out, err error) {
	var in In
	if err := read(s, schema, raw, &in); err != nil {
		return out, err
	}
	return do(ctx, c, in)
}

// read reads a tool's input strictly: it has what its schema says, no field
// twice, and nothing else.
func read(s *schemas, schema *huma.Schema, raw []byte, in any) error {
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return &service.Error{Code: service.CodeMalformed, Text: "the arguments can't be read: " + jsonWords(err)}
	}
	found := &huma.ValidateResult{}
	huma.Validate(s.types, schema, huma.NewPathBuffer([]byte("arguments"), len("arguments")), huma.ModeWriteToServer, plain, found)
	if len(found.Errors) > 0 {
		return wrong(found.Errors)
	}
	if err := json.Unmarshal(raw, in, json.RejectUnknownMembers(true)); err != nil {
		return &service.Error{Code: service.CodeInvalid, Text: "the arguments can't be read: " + jsonWords(err)}
	}
	return nil
}

// jsonWords says what is wrong with JSON, and where.
func jsonWords(err error) string {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("%v, at byte %d", syntax.Err, syntax.ByteOffset)
	case errors.As(err, &semantic) && semantic.Err != nil:
		return fmt.Sprintf("arguments%s: %v", strings.ReplaceAll(string(semantic.JSONPointer), "/", "."), semantic.Err)
	default:
		return err.Error()
	}
}

// wrong says what in the arguments was wrong. It leaves out the values, as
// one may be a secret.
func wrong(errs []error) error {
	e := &service.Error{Code: service.CodeInvalid}
	for _, err := range errs {
		var d *huma.ErrorDetail
		if errors.As(err, &d) {
			e.Fields = append(e.Fields, service.FieldError{Location: d.Location, Message: d.Message})
		} else {
			e.Fields = append(e.Fields, service.FieldError{Location: "arguments", Message: err.Error()})
		}
	}
	e.Text = e.Fields[0].Location + ": " + e.Fields[0].Message
	if len(e.Fields) > 1 {
		e.Text = fmt.Sprintf("%d of the arguments are wrong, the first %s", len(e.Fields), e.Text)
	}
	return e
}

// result writes a tool's answer, in the JSON that REST has. A text that the
// answer has of its own is told beside it.
func result(out any) (*sdk.CallToolResult, error) {
	b, err := marshal(out)
	if err != nil {
		return nil, fmt.Errorf("writing a tool's answer: %w", err)
	}
	text := string(b)
	if did, ok := out.(interface{ Words() string }); ok {
		text = did.Words()
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: stdjson.RawMessage(b)}, nil
}

// marshal writes v in the JSON that REST has.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, jsontext.PreserveRawStrings(true), jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
}

// toolError answers a call that failed: the model is told why, in words, as
// the protocol has it.
func (m *Server) toolError(c *call, t tool, err error) *sdk.CallToolResult {
	e := service.ErrorOf(err)
	if e.Kind() == service.KindInternal {
		m.log.Error("an MCP tool failed", "request", c.id, "tool", t.name, "err", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)", e.Text, e.Code)
	for _, f := range e.Fields {
		// The service names the parts of a request as REST has them.
		where := f.Location
		for _, part := range []string{"body.", "query.", "path.", "header."} {
			where = strings.TrimPrefix(where, part)
		}
		fmt.Fprintf(&b, "\n- %s: %s", where, f.Message)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, "\nTry again in %v.", e.RetryAfter.Round(time.Second))
	}
	if e.Kind() == service.KindInternal {
		fmt.Fprintf(&b, "\nControl's log says why, under %s.", c.id)
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: b.String()}}}
}

// logCall says what was called. A change is said to every log; a read to one
// that wants all.
func (m *Server) logCall(c *call, t tool, start time.Time, err error) {
	log := m.log.Debug
	if t.changes && err == nil {
		log = m.log.Info
	}
	code := ""
	if err != nil {
		code = string(service.ErrorOf(err).Code)
	}
	log("an MCP tool was called", "request", c.id, "tool", t.name, "code", code, "ms", since(start), "role", string(c.caller.Role),
		"name", c.caller.Name, "source", c.source)
}
