package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// inForce is said of what was set.
const inForce = "The rigs that it is for have it within five seconds."

func modelRouteCommand(a *app) *cobra.Command {
	return group("model-route", "list, set and remove how models are reached",
		modelRouteListCommand(a), modelRouteSetCommand(a), removeConfigCommand(a, "model-routes", "model route", "Roles that use it have the route of every rig, or none."))
}

func mcpServerCommand(a *app) *cobra.Command {
	return group("mcp-server", "list, set and remove the MCP servers that runs may name",
		mcpServerListCommand(a), mcpServerSetCommand(a), removeConfigCommand(a, "mcp-servers", "MCP server", "Runs that name it are told that control can't give it."))
}

func gitAccessCommand(a *app) *cobra.Command {
	return group("git-access", "list, set and remove the sign-ins that kits are fetched with",
		gitAccessListCommand(a), gitAccessSetCommand(a), removeConfigCommand(a, "git-accesses", "Git access", "Every rig that was given it loses it."))
}

// secretFlags say where a secret is read from: never the command line, which
// others on the machine can see.
type secretFlags struct{ file, headers string }

func (f *secretFlags) add(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.file, "secret-file", "", "file with "+what+", - for standard input; without it the one there is stays")
}

func (f *secretFlags) addHeaders(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.headers, "headers-file", "", "file with headers to send, each on a line as Name: value; - for standard input")
}

// read gives the secret; nil when none was named.
func (f *secretFlags) read(a *app) (*service.SignIn, error) {
	if f.file == "" && f.headers == "" {
		return nil, nil
	}
	if f.file == "-" && f.headers == "-" {
		return nil, wrongUse("--secret-file and --headers-file can't both be standard input")
	}
	s := &service.SignIn{}
	if f.file != "" {
		text, err := a.readSecret(f.file)
		if err != nil {
			return nil, err
		}
		s.Key = text
	}
	if f.headers == "" {
		return s, nil
	}
	text, err := a.readSecret(f.headers)
	if err != nil {
		return nil, err
	}
	s.Headers = map[string]string{}
	for n, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, wrongUse("line %d of %s is no header: write Name: value", n+1, f.headers)
		}
		s.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return s, nil
}

// maxSecretFile is more than a secret may have.
const maxSecretFile = 256 << 10

// readSecret reads a file with a secret, - for standard input, without the line
// end at its end.
func (a *app) readSecret(path string) (string, error) {
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("reading the secret: %w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxSecretFile))
	if err != nil {
		return "", fmt.Errorf("reading the secret: %w", err)
	}
	text := strings.TrimRight(string(b), "\r\n")
	if text == "" {
		return "", wrongUse("the secret in %s is empty", path)
	}
	return text, nil
}

// listing is a command that lists something of the rigs' config.
func listing[T any](a *app, short, none string, read func(*client.Client, context.Context) (T, error), show func(T) *table) *cobra.Command {
	return &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: short, Args: noArgs,
		RunE: a.calling(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := read(c, ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			t := show(list)
			if len(t.rows) == 0 {
				a.warn("%s", none)
			}
			return a.printTable(t)
		})}
}

func modelRouteListCommand(a *app) *cobra.Command {
	return listing(a, "list the model routes, without their secrets", "There is no model route. Make one: thermite model-route set NAME", (*client.Client).ModelRoutes,
		func(list service.ModelRouteList) *table {
			t := &table{header: []string{"ROUTE", "MODEL", "API", "AT", "KEY", "USED BY", "CHANGED"}, wide: []int{3, 5}}
			for _, r := range list.Routes {
				key := "none"
				if r.HasKey {
					key = "kept"
				}
				var uses []string
				for _, u := range r.Uses {
					uses = append(uses, useWords(u))
				}
				t.add(r.Name, r.Model, r.API, r.BaseURL, key, orDash(strings.Join(uses, ", ")), a.moment(r.ChangedAt.Time(), a.now()))
			}
			return t
		})
}

func useWords(u service.RouteUse) string {
	if u.Rig == "" {
		return u.Role
	}
	return u.Role + "@" + u.Rig
}

func modelRouteSetCommand(a *app) *cobra.Command {
	var (
		n    service.NewModelRoute
		uses []string
		f    secretFlags
	)
	cmd := &cobra.Command{
		Use: "set NAME", Short: "make a model route, or change it", Args: exactly("name"),
		Long: `Make a model route, or change it to just what the flags say. The key is read from a
file or from standard input, is kept sealed, and is never shown again.`,
		Example: `  thermite model-route set main --api openai-chat --url https://api.example.org/v1 --model small-1 \
      --secret-file - --use agents --use planner@workshop`,
	}
	cmd.RunE = a.calling(func(ctx context.Context, c *client.Client, args []string) error {
		n.Uses = []service.RouteUse{}
		for _, u := range uses {
			role, rig, _ := strings.Cut(u, "@")
			n.Uses = append(n.Uses, service.RouteUse{Role: role, Rig: rig})
		}
		var err error
		if n.Secret, err = f.read(a); err != nil {
			return err
		}
		set, err := c.SetModelRoute(ctx, args[0], n)
		if err != nil {
			return err
		}
		return a.done(set, "The model route %s is set. %s", set.Name, inForce)
	})
	cmd.Flags().StringVar(&n.API, "api", wire.APIOpenAIChat, "the API that the model is called by: "+strings.Join(wire.ModelAPIs, ", "))
	cmd.Flags().StringVar(&n.BaseURL, "url", "", "the provider's address")
	cmd.Flags().StringVar(&n.Model, "model", "", "what the provider calls the model")
	cmd.Flags().StringArrayVar(&uses, "use", nil, "a role that uses it, of every rig or ROLE@RIG of one: "+strings.Join(wire.ModelRoles, ", ")+"; again for each")
	f.add(cmd, "the provider's key, or a subscription's token")
	f.addHeaders(cmd)
	_ = cmd.MarkFlagRequired("url")
	_ = cmd.MarkFlagRequired("model")
	return cmd
}

func mcpServerListCommand(a *app) *cobra.Command {
	return listing(a, "list the MCP servers, without their sign-ins", "There is no MCP server. Make one: thermite mcp-server set NAME", (*client.Client).MCPServers,
		func(list service.MCPServerList) *table {
			t := &table{header: []string{"SERVER", "AT", "SIGN-IN", "CHANGED"}, wide: []int{1, 2}}
			for _, s := range list.Servers {
				t.add(s.Name, s.URL, orDash(strings.Join(s.Headers, ", ")), a.moment(s.ChangedAt.Time(), a.now()))
			}
			return t
		})
}

func mcpServerSetCommand(a *app) *cobra.Command {
	var (
		n service.NewMCPServer
		f secretFlags
	)
	cmd := &cobra.Command{Use: "set NAME", Short: "make an MCP server, or change it", Args: exactly("name"),
		Example: "  thermite mcp-server set papers --url https://mcp.example.org/mcp --secret-file token.txt"}
	cmd.RunE = a.calling(func(ctx context.Context, c *client.Client, args []string) error {
		var err error
		if n.Secret, err = f.read(a); err != nil {
			return err
		}
		set, err := c.SetMCPServer(ctx, args[0], n)
		if err != nil {
			return err
		}
		return a.done(set, "The MCP server %s is set. %s", set.Name, inForce)
	})
	cmd.Flags().StringVar(&n.URL, "url", "", "its address, of streamable HTTP")
	f.add(cmd, "its bearer token")
	f.addHeaders(cmd)
	_ = cmd.MarkFlagRequired("url")
	return cmd
}

func gitAccessListCommand(a *app) *cobra.Command {
	return listing(a, "list the Git accesses, without their secrets", "There is no Git access. Make one: thermite git-access set NAME", (*client.Client).GitAccesses,
		func(list service.GitAccessList) *table {
			t := &table{header: []string{"ACCESS", "HOST", "USER", "CHANGED"}, wide: []int{1}}
			for _, g := range list.Accesses {
				t.add(g.Name, g.Host, g.Username, a.moment(g.ChangedAt.Time(), a.now()))
			}
			return t
		})
}

func gitAccessSetCommand(a *app) *cobra.Command {
	var (
		n    service.NewGitAccess
		file string
	)
	cmd := &cobra.Command{Use: "set NAME", Short: "make a Git access, or change it", Args: exactly("name"),
		Long: `Make a sign-in to a Git host, or change it. A rig has it only while a run that is
assigned to it names it (thermite run start --git-access NAME), and uses it for that host only.`,
		Example: "  thermite git-access set kits --host git.example.org --user thermite --secret-file - < token.txt"}
	cmd.RunE = a.calling(func(ctx context.Context, c *client.Client, args []string) error {
		if file != "" {
			var err error
			if n.Secret, err = a.readSecret(file); err != nil {
				return err
			}
		}
		set, err := c.SetGitAccess(ctx, args[0], n)
		if err != nil {
			return err
		}
		return a.done(set, "The Git access %s is set. %s", set.Name, inForce)
	})
	cmd.Flags().StringVar(&n.Host, "host", "", "the only host that it is for, with its port when that is not 443")
	cmd.Flags().StringVar(&n.Username, "user", "", "the user's name there")
	cmd.Flags().StringVar(&file, "secret-file", "", "file with the token or password, - for standard input; without it the one there is stays")
	_ = cmd.MarkFlagRequired("host")
	_ = cmd.MarkFlagRequired("user")
	return cmd
}

func removeConfigCommand(a *app, of, what, means string) *cobra.Command {
	return a.addYes(&cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "remove one, and its secret", Args: exactly("name"),
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			if err := a.confirm(fmt.Sprintf("The %s %s goes, with its secret. %s", what, args[0], means)); err != nil {
				return err
			}
			if err := c.RemoveConfig(ctx, of, args[0]); err != nil {
				return err
			}
			return a.done(doneTo{ID: args[0], Done: "removed"}, "The %s %s is removed.", what, args[0])
		}),
	})
}
