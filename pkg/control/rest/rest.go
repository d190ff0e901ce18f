// Package rest is control's REST API, under /v1: the service's calls as
// routes, with an OpenAPI document made from the same code that answers.
//
//	request ─▶ guard (id, headers, panics) ─▶ route ─▶ who calls, may they ─▶ body ─▶ service
//
// Guarantees: nothing of a body is read before its caller may make the call;
// a body, a query or a path that is not of its form changes nothing and is
// answered with what is wrong and where; every error is RFC 9457's problem
// with a code of the service's; no token is logged or given back.
package rest

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"thermite/pkg/control/service"
)

// API is control's REST API.
type API struct {
	service *service.Service
	log     *slog.Logger
	huma    huma.API
	mux     *http.ServeMux
	handler http.Handler
	// methods are each path's, for the answer to another one.
	methods map[string][]string
	// bodyTimeout is how long a body may take to come.
	bodyTimeout time.Duration
}

// New makes the API. It answers everything under /v1/.
func New(s *service.Service, log *slog.Logger) *API { return newAPI(s, log, bodyTimeout) }

func newAPI(s *service.Service, log *slog.Logger, bodyTimeout time.Duration) *API {
	setUp()
	a := &API{service: s, log: log, bodyTimeout: bodyTimeout, mux: http.NewServeMux(), methods: map[string][]string{}}
	a.huma = humago.New(a.mux, config())
	a.stateRoutes()
	a.rigRoutes()
	a.keptRoutes()
	a.eventRoutes()
	a.runRoutes()
	a.runOrders()
	a.queueOrders()
	a.attemptRoutes()
	a.promptRoutes()
	a.campaignRoutes()
	a.commandRoutes()
	a.kitRoutes()
	a.kbRoutes()
	a.liveRoutes()
	a.registrationRoute()
	a.joinRoutes()
	a.recordRoutes()
	a.tokenRoutes()
	a.configRoutes()
	describe(a.huma.OpenAPI())
	a.documentRoutes()
	a.otherRoutes()
	a.handler = a.guard(a.mux)
	return a
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Document is the API's OpenAPI document.
func (a *API) Document() *huma.OpenAPI { return a.huma.OpenAPI() }
