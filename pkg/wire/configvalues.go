package wire

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// ConfigValue is the value of one of a rig's keys.
type ConfigValue interface {
	// ConfigKey is the key.
	ConfigKey() string
	// Empty says that it holds nothing.
	Empty() bool
	// Check says what is wrong with it, by its field, and nothing of a secret.
	Check() error
}

// The APIs that a model is called by.
const (
	APIOpenAIChat        = "openai-chat"
	APIOpenAIResponses   = "openai-responses"
	APIAnthropicMessages = "anthropic-messages"
)

// ModelAPIs are the APIs.
var ModelAPIs = []string{APIOpenAIChat, APIOpenAIResponses, APIAnthropicMessages}

// The roles that a model route is for: the rig's agents, its planner, and its
// advisors.
const (
	RoleAgents    = "agents"
	RolePlanner   = "planner"
	RoleTeacher   = "teacher"
	RoleCritic    = "critic"
	RoleLibrarian = "librarian"
)

// AdvisorRoles are the roles of the advisors, and ModelRoles all of them.
var (
	AdvisorRoles = []string{RoleTeacher, RoleCritic, RoleLibrarian}
	ModelRoles   = []string{RoleAgents, RolePlanner, RoleTeacher, RoleCritic, RoleLibrarian}
)

// ModelRoute is how a model is reached.
type ModelRoute struct {
	// Name is what the owner calls the route.
	Name string `json:"name"`
	// API is one of ModelAPIs, and BaseURL where it is, without a final slash.
	API     string `json:"api"`
	BaseURL string `json:"base_url"`
	// Model is what the provider calls the model.
	Model string `json:"model"`
	// Key is the provider's key, or a subscription's token; a provider on the
	// rig's own network may want none.
	Key Secret `json:"key,omitzero"`
	// Headers are sent beside it, such as a subscription's account.
	Headers map[string]Secret `json:"headers,omitempty"`
	// ExpiresAt is when a subscription's token ends; control renews it before.
	ExpiresAt Time `json:"expires_at,omitzero"`
}

// ModelRouteConfig is the value of model-route. A route that is absent is the
// rig's own settings' matter.
type ModelRouteConfig struct {
	Agents  *ModelRoute `json:"agents,omitzero"`
	Planner *ModelRoute `json:"planner,omitzero"`
}

// AdvisorRoutesConfig is the value of advisor-routes.
type AdvisorRoutesConfig struct {
	// Routes are by role, for those the owner gave a model.
	Routes map[string]ModelRoute `json:"routes,omitempty"`
}

// MCPServer is an MCP server that a run's agents may use.
type MCPServer struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Headers are its sign-in.
	Headers map[string]Secret `json:"headers,omitempty"`
	// Runs are the rig's runs that name it.
	Runs []string `json:"runs"`
	// ExpiresAt is when the sign-in ends; control renews it before.
	ExpiresAt Time `json:"expires_at,omitzero"`
}

// MissingMCPServer is one that a run names and control can't give.
type MissingMCPServer struct {
	Name string   `json:"name"`
	Why  string   `json:"why"`
	Runs []string `json:"runs"`
}

// MCPServersConfig is the value of mcp-servers.
type MCPServersConfig struct {
	Servers []MCPServer        `json:"servers,omitempty"`
	Missing []MissingMCPServer `json:"missing,omitempty"`
}

// GitAccess is a sign-in to a Git host.
type GitAccess struct {
	Name string `json:"name"`
	// Host is the only one that it is for, with its port when that is not
	// 443.
	Host     string `json:"host"`
	Username string `json:"username"`
	Secret   Secret `json:"secret"`
}

// GitAccessConfig is the value of git-access.
type GitAccessConfig struct {
	Accesses []GitAccess `json:"accesses,omitempty"`
}

// ConfigKey implements ConfigValue.
func (ModelRouteConfig) ConfigKey() string    { return ConfigModelRoute }
func (AdvisorRoutesConfig) ConfigKey() string { return ConfigAdvisorRoutes }
func (MCPServersConfig) ConfigKey() string    { return ConfigMCPServers }
func (GitAccessConfig) ConfigKey() string     { return ConfigGitAccess }

// Empty implements ConfigValue.
func (v ModelRouteConfig) Empty() bool    { return v.Agents == nil && v.Planner == nil }
func (v AdvisorRoutesConfig) Empty() bool { return len(v.Routes) == 0 }
func (v MCPServersConfig) Empty() bool    { return len(v.Servers)+len(v.Missing) == 0 }
func (v GitAccessConfig) Empty() bool     { return len(v.Accesses) == 0 }

// String names the routes. Printed as a pointer, a route would show its key.
func (v ModelRouteConfig) String() string {
	name := func(r *ModelRoute) string {
		if r == nil {
			return "none"
		}
		return r.Name
	}
	return "agents: " + name(v.Agents) + ", planner: " + name(v.Planner)
}

// Bounds of a value.
const (
	maxConfigURL     = 2000
	maxConfigHeaders = 20
	maxConfigEntries = 500
)

// Check implements ConfigValue.
func (v ModelRouteConfig) Check() error {
	for role, r := range map[string]*ModelRoute{RoleAgents: v.Agents, RolePlanner: v.Planner} {
		if r != nil {
			if err := r.Check(); err != nil {
				return fmt.Errorf("%s: %w", role, err)
			}
		}
	}
	return nil
}

// Check implements ConfigValue.
func (v AdvisorRoutesConfig) Check() error {
	for _, role := range slices.Sorted(maps.Keys(v.Routes)) {
		if err := first(oneOf("role", role, AdvisorRoles), v.Routes[role].Check()); err != nil {
			return fmt.Errorf("routes.%s: %w", clip(role), err)
		}
	}
	return nil
}

// Check says what is wrong with the route.
func (r ModelRoute) Check() error {
	return first(CheckName("route", r.Name), oneOf("api", r.API, ModelAPIs), CheckBaseURL("base_url", r.BaseURL), some("model", r.Model, maxName),
		printable("model", r.Model), CheckSecret("key", r.Key), checkHeaders(r.Headers))
}

// Check implements ConfigValue.
func (v MCPServersConfig) Check() error {
	if len(v.Servers)+len(v.Missing) > maxConfigEntries {
		return fmt.Errorf("servers has %d entries, at most %d", len(v.Servers)+len(v.Missing), maxConfigEntries)
	}
	for i, s := range v.Servers {
		if err := first(CheckName("server", s.Name), CheckBaseURL("url", s.URL), checkHeaders(s.Headers), checkRuns(s.Runs)); err != nil {
			return fmt.Errorf("servers[%d]: %w", i, err)
		}
	}
	for i, s := range v.Missing {
		if err := first(CheckName("server", s.Name), some("why", s.Why, maxWhy), checkRuns(s.Runs)); err != nil {
			return fmt.Errorf("missing[%d]: %w", i, err)
		}
	}
	return nil
}

func checkRuns(runs []string) error {
	for _, run := range runs {
		if err := CheckName("run", run); err != nil {
			return err
		}
	}
	return nil
}

// Check implements ConfigValue.
func (v GitAccessConfig) Check() error {
	if len(v.Accesses) > maxConfigEntries {
		return fmt.Errorf("accesses has %d entries, at most %d", len(v.Accesses), maxConfigEntries)
	}
	for i, a := range v.Accesses {
		if err := a.Check(); err != nil {
			return fmt.Errorf("accesses[%d]: %w", i, err)
		}
	}
	return nil
}

// Check says what is wrong with the access.
func (a GitAccess) Check() error {
	if a.Secret == "" {
		return errors.New("secret is missing")
	}
	return first(CheckName("access", a.Name), CheckHost("host", a.Host), CheckUsername("username", a.Username), CheckSecret("secret", a.Secret))
}

// CheckBaseURL says whether s is an https address, or an http one, with no
// user, query or fragment: a secret has its own field.
func CheckBaseURL(field, s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || len(s) > maxConfigURL:
		return fmt.Errorf("%s is no address, or has more than %d bytes", field, maxConfigURL)
	case u.User != nil:
		return fmt.Errorf("%s holds a user: a secret has a field of its own", field)
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return fmt.Errorf("%s %q must be https://host/path or http://host/path, without a query", field, clip(u.Redacted()))
	}
	return nil
}

// CheckHost says whether s is a host's name or address, with a port or
// without.
func CheckHost(field, s string) error {
	host := s
	if h, port, has := strings.Cut(s, ":"); has {
		if host = h; !made(port, 1, 5, isDigit) {
			return fmt.Errorf("%s %q has a port that is none", field, clip(s))
		}
	}
	ok := made(host, 1, 253, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' || c == '.' })
	if !ok || strings.HasPrefix(host, "-") || strings.HasPrefix(host, ".") {
		return fmt.Errorf("%s %q is no host's name, in lower case, such as git.example.org or git.example.org:8443", field, clip(s))
	}
	return nil
}

// CheckUsername says whether s can be a user's name of a Git host.
func CheckUsername(field, s string) error {
	return first(some(field, s, maxName), printable(field, s))
}

// CheckSecret says whether s can go in a header or to git: one line of
// printable characters.
func CheckSecret(field string, s Secret) error {
	if len(s) > MaxSecretBytes {
		return fmt.Errorf("%s has %d bytes, at most %d", field, len(s), MaxSecretBytes)
	}
	return printable(field, string(s))
}

// printable says of no text what it is: it may be a secret.
func printable(field, s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("%s must be one line of printable ASCII characters", field)
	}
	return nil
}

func checkHeaders(headers map[string]Secret) error {
	if len(headers) > maxConfigHeaders {
		return fmt.Errorf("headers has %d entries, at most %d", len(headers), maxConfigHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := first(CheckHeader(name), CheckSecret("headers."+name, headers[name])); err != nil {
			return err
		}
	}
	return nil
}

// ownHeaders are set by who makes the call.
var ownHeaders = []string{"host", "content-length", "content-type", "transfer-encoding", "connection", "te", "trailer", "upgrade", "accept-encoding"}

// CheckHeader says whether a sign-in may set the header.
func CheckHeader(name string) error {
	if !made(name, 1, 100, func(c byte) bool { return isLetter(c) || isDigit(c) || 'A' <= c && c <= 'Z' || c == '-' || c == '_' }) {
		return fmt.Errorf("header %q: use 1 to 100 of A-Z, a-z, 0-9, - and _", clip(name))
	}
	if slices.Contains(ownHeaders, strings.ToLower(name)) {
		return fmt.Errorf("header %s is set by who makes the call", name)
	}
	return nil
}
