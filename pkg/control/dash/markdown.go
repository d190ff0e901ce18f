package dash

import (
	"bytes"
	"html/template"
	"regexp"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// markdown turns the text of a rig's into HTML that a page may hold: the text
// is a stranger's, so only what a report is made of is left of it, no link,
// image, style, id or script of its own.
type markdown struct {
	engine goldmark.Markdown
	policy *bluemonday.Policy
}

func newMarkdown() *markdown {
	p := bluemonday.NewPolicy()
	p.AllowElements("h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "ul", "ol", "li", "strong", "em", "del", "code", "pre", "blockquote",
		"table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	return &markdown{policy: p, engine: goldmark.New(goldmark.WithRendererOptions(html.WithXHTML()),
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough))}
}

// html gives the text as HTML. Its headings go below the page's own, which
// says what a first one says.
func (m *markdown) html(source string) (template.HTML, error) {
	b := []byte(source)
	doc := m.engine.Parser().Parse(text.NewReader(b))
	if h, ok := doc.FirstChild().(*ast.Heading); ok && h.Level == 1 {
		doc.RemoveChild(doc, h)
	}
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && entering {
			h.Level = max(2, h.Level) // a page has one first heading
		}
		return ast.WalkContinue, nil
	})
	var out bytes.Buffer
	if err == nil {
		err = m.engine.Renderer().Render(&out, b, doc)
	}
	if err != nil {
		return "", err
	}
	return template.HTML(m.policy.SanitizeBytes(out.Bytes())), nil
}
