package service

import "thermite/pkg/wire"

// ConfigState is what control wrote of the rigs' config, and what the rigs'
// supervisors say they took of it.
type ConfigState struct {
	Keys    []ConfigKeyState `json:"keys" nullable:"false" doc:"Each of the keys that a rig has"`
	Last    string           `json:"last,omitzero" doc:"Why a value could not be made or written last; the rig keeps the one it has"`
	LastAt  wire.Time        `json:"last_at,omitzero" doc:"When that was found"`
	Taken   uint64           `json:"taken" doc:"Values that the rigs' supervisors took since they started, as they said last"`
	Refused uint64           `json:"refused" doc:"Messages that they could not take"`
	Rigs    []RigConfigCount `json:"rigs" nullable:"false" doc:"Those that refused a message, and then the others, by name, at most 100"`
}

// ConfigKeyState counts a key's values.
type ConfigKeyState struct {
	Key     string `json:"key" doc:"The key: model-route, advisor-routes, mcp-servers or git-access" example:"model-route"`
	Written uint64 `json:"written" doc:"Values written since control started"`
	Failing uint64 `json:"failing" doc:"Rigs whose value can't be made or written now"`
}

// RigConfigCount is what one rig's supervisor says.
type RigConfigCount struct {
	Rig     string `json:"rig" doc:"The rig" example:"workshop"`
	Taken   uint64 `json:"taken" doc:"Values it took since it started"`
	Refused uint64 `json:"refused" doc:"Messages it could not take"`
}

// SignIn is the secret of a model route or an MCP server, as it is given. It is
// never shown again. One with nothing in it is none.
type SignIn struct {
	Key     string            `json:"key,omitzero" maxLength:"16384" doc:"The provider's key, or a subscription's token; of an MCP server, a bearer token"`
	Headers map[string]string `json:"headers,omitempty" doc:"Headers to send with each call, by name"`
	Renew   *SignInRenewal    `json:"renew,omitzero" doc:"How the key is got anew before it ends, by OAuth 2.0's refresh token"`
}

// SignInRenewal is how a token is got anew.
type SignInRenewal struct {
	TokenURL     string `json:"token_url" minLength:"1" maxLength:"2000" doc:"Where a token is got" example:"https://auth.example.org/oauth/token"`
	ClientID     string `json:"client_id" minLength:"1" maxLength:"500" doc:"The client's id"`
	ClientSecret string `json:"client_secret,omitzero" maxLength:"16384" doc:"The client's secret, if it has one"`
	RefreshToken string `json:"refresh_token" minLength:"1" maxLength:"16384" doc:"The refresh token"`
	Scope        string `json:"scope,omitzero" maxLength:"1000" doc:"The scope to ask for"`
}

// RouteUse is a role that uses a model route.
type RouteUse struct {
	Role string `json:"role" enum:"agents,planner,teacher,critic,librarian" doc:"Who uses it: the rig's agents, its planner, or an advisor" example:"agents"`
	Rig  string `json:"rig,omitzero" maxLength:"40" doc:"The rig; absent, every rig that has no route of its own for the role" example:"workshop"`
}

// NewModelRoute is a model route as it is to be.
type NewModelRoute struct {
	API     string     `json:"api" enum:"openai-chat,openai-responses,anthropic-messages" doc:"The API that the model is called by" example:"openai-chat"`
	BaseURL string     `json:"base_url" minLength:"1" maxLength:"2000" doc:"The provider's address" example:"https://api.example.org/v1"`
	Model   string     `json:"model" minLength:"1" maxLength:"200" doc:"What the provider calls the model" example:"small-1"`
	Secret  *SignIn    `json:"secret,omitzero" doc:"The key; absent, the one there is stays"`
	Uses    []RouteUse `json:"uses" nullable:"false" maxItems:"1000" doc:"The roles that use it, and no other: each leaves the route it used before"`
}

// ModelRoute is a model route, without its secret.
type ModelRoute struct {
	Name      string     `json:"name" doc:"Its name" example:"main"`
	API       string     `json:"api" doc:"The API that the model is called by" example:"openai-chat"`
	BaseURL   string     `json:"base_url" doc:"The provider's address"`
	Model     string     `json:"model" doc:"What the provider calls the model"`
	HasKey    bool       `json:"has_key" doc:"Whether control has a key for it, which it shows to nobody"`
	Headers   []string   `json:"headers,omitempty" doc:"The names of the headers that are sent beside it"`
	Renews    bool       `json:"renews,omitzero" doc:"Whether control gets its key anew before it ends"`
	Uses      []RouteUse `json:"uses" nullable:"false" doc:"The roles that use it"`
	ChangedAt wire.Time  `json:"changed_at" doc:"When it was changed last"`
}

// ModelRouteList is every model route.
type ModelRouteList struct {
	Routes []ModelRoute `json:"model_routes" nullable:"false" doc:"The routes, by name"`
}

// NewMCPServer is an MCP server as it is to be.
type NewMCPServer struct {
	URL    string  `json:"url" minLength:"1" maxLength:"2000" doc:"Its address, of streamable HTTP" example:"https://mcp.example.org/mcp"`
	Secret *SignIn `json:"secret,omitzero" doc:"Its sign-in; absent, the one there is stays"`
}

// MCPServer is an MCP server that runs may name, without its sign-in.
type MCPServer struct {
	Name      string    `json:"name" doc:"Its name" example:"papers"`
	URL       string    `json:"url" doc:"Its address"`
	Headers   []string  `json:"headers,omitempty" doc:"The names of the headers that are its sign-in"`
	Renews    bool      `json:"renews,omitzero" doc:"Whether control gets its token anew before it ends"`
	ChangedAt wire.Time `json:"changed_at" doc:"When it was changed last"`
}

// MCPServerList is every MCP server.
type MCPServerList struct {
	Servers []MCPServer `json:"mcp_servers" nullable:"false" doc:"The servers, by name"`
}

// NewGitAccess is a Git access as it is to be.
type NewGitAccess struct {
	Host     string `json:"host" minLength:"1" maxLength:"260" doc:"The only host that it is for, with its port when that is not 443" example:"git.example.org"`
	Username string `json:"username" minLength:"1" maxLength:"200" doc:"The user's name there" example:"thermite"`
	Secret   string `json:"secret,omitzero" maxLength:"16384" doc:"The token or password; absent, the one there is stays, unless the host changes"`
}

// GitAccess is a sign-in to a Git host, without its secret.
type GitAccess struct {
	Name      string    `json:"name" doc:"Its name" example:"kits"`
	Host      string    `json:"host" doc:"The only host that it is for" example:"git.example.org"`
	Username  string    `json:"username" doc:"The user's name there"`
	ChangedAt wire.Time `json:"changed_at" doc:"When it was changed last"`
}

// GitAccessList is every Git access.
type GitAccessList struct {
	Accesses []GitAccess `json:"git_accesses" nullable:"false" doc:"The accesses, by name"`
}
