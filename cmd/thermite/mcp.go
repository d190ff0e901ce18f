package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/settings"
)

// connection is how a program that talks MCP reaches a control.
type connection struct {
	URL       string `json:"url"`
	Transport string `json:"transport"`
	// Authority is the file of the certificate that control's is signed by;
	// empty where every program trusts it.
	Authority string `json:"authority,omitempty"`
	// Config is what most clients take, with the token by its variable.
	Config any `json:"config"`
}

func mcpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "show how to connect an MCP client, such as an agent, to control",
		Long: `Show how to connect an MCP client, such as an agent program, to the control that
the settings name. A client that is given the owner's token may change things; a
reader's (thermite token add NAME) may only read.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := settings.Resolve(a.flags, a.getenv)
			if err != nil {
				return useError{err}
			}
			if s.URL == "" {
				return wrongUse("no control is named\nStart one here with thermite up, or name one with --url or THERMITE_URL.")
			}
			if err := settings.CheckURL(s.URL); err != nil {
				return useError{err}
			}
			c := connectionOf(s.URL, s.Authority)
			if a.json {
				return a.printJSON(c)
			}
			return a.showConnection(c)
		},
	}
}

func connectionOf(url, authority string) connection {
	type server struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}
	at := strings.TrimSuffix(url, "/") + "/mcp"
	return connection{URL: at, Transport: "streamable HTTP", Authority: authority, Config: map[string]any{
		"mcpServers": map[string]server{"thermite": {Type: "http", URL: at, Headers: map[string]string{"Authorization": "Bearer ${THERMITE_TOKEN}"}}}}}
}

// showConnection says it in words. The token is never printed: who has it
// puts it into the variable.
func (a *app) showConnection(c connection) error {
	config, err := json.MarshalIndent(c.Config, "  ", "  ")
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Control serves MCP, by %s, at\n\n  %s\n\nwith a token as bearer. Make one that may only read:\n\n  thermite token add agents\n", c.Transport, c.URL)
	if c.Authority != "" && strings.HasPrefix(c.URL, "https:") {
		fmt.Fprintf(&b, "\nControl's certificate is of its own authority. A client on Node.js trusts it by\n\n  export NODE_EXTRA_CA_CERTS=%s\n", shellWord(c.Authority))
	}
	fmt.Fprintf(&b, "\nClaude Code:\n\n  claude mcp add --transport http thermite %s --header \"Authorization: Bearer $THERMITE_TOKEN\"\n", shellWord(c.URL))
	fmt.Fprintf(&b, "\nThe protocol's inspector, which calls a tool from the command line:\n\n  npx @modelcontextprotocol/inspector --cli --transport http --server-url %s \\\n    --header \"Authorization: Bearer $THERMITE_TOKEN\" --method tools/list\n", shellWord(c.URL))
	fmt.Fprintf(&b, "\nAny other, by its settings file:\n\n  %s\n", config)
	_, err = fmt.Fprint(a.out, plainLines(b.String()))
	return err
}
