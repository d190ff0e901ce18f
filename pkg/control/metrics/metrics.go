// Package metrics gives control's figures to Prometheus, at GET /metrics: the
// message bus as control sees it, each figure by the name that GET /v1/bus
// and the dashboard's Settings › Message bus know it by, and the process.
//
// The owner's and the reader's tokens read it, as bearer tokens. It has no
// figures of its own: each scrape asks the service once, so one scrape's
// figures are of one moment.
package metrics

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"thermite/pkg/control/service"
)

// Path is where control serves the metrics.
const Path = "/metrics"

// Handler answers GET /metrics.
type Handler struct {
	service *service.Service
	log     *slog.Logger
	// process has the figures of control's own process.
	process *prometheus.Registry
}

// New makes the handler. Build is control's version.
func New(s *service.Service, build string, log *slog.Logger) *Handler {
	h := &Handler{service: s, log: log, process: prometheus.NewRegistry()}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "thermite_build_info",
		Help: "1, labelled with control's version.", ConstLabels: prometheus.Labels{"version": build}})
	info.Set(1)
	h.process.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return h
}

// ServeHTTP answers a scrape.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this takes GET and HEAD only", http.StatusMethodNotAllowed)
		return
	}
	caller, err := h.caller(r)
	if err != nil {
		h.refuse(w, err)
		return
	}
	state, err := h.service.Bus(r.Context(), caller)
	if err != nil {
		h.refuse(w, err)
		return
	}
	scrape := prometheus.NewRegistry()
	if err := scrape.Register(&bus{state}); err != nil {
		h.refuse(w, err)
		return
	}
	promhttp.HandlerFor(prometheus.Gatherers{h.process, scrape}, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelError),
	}).ServeHTTP(w, r)
}

// caller gives who scrapes, by the bearer token.
func (h *Handler) caller(r *http.Request) (service.Caller, error) {
	source := r.RemoteAddr
	if host, _, err := net.SplitHostPort(source); err == nil {
		source = host
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		return service.Stranger(source), h.service.CheckStranger(source)
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return service.Stranger(source), &service.Error{Code: service.CodeNotSignedIn, Text: "the Authorization header must be Bearer and a token"}
	}
	return h.service.Authenticate(r.Context(), strings.TrimSpace(token), source)
}

// refuse answers with what is wrong, in words.
func (h *Handler) refuse(w http.ResponseWriter, err error) {
	e := service.ErrorOf(err)
	status := http.StatusInternalServerError
	switch e.Kind() {
	case service.KindNotSignedIn:
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Bearer realm="thermite"`)
	case service.KindNotAllowed:
		status = http.StatusForbidden
	case service.KindTooMany:
		status = http.StatusTooManyRequests
	case service.KindUnavailable:
		status = http.StatusServiceUnavailable
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	if status == http.StatusInternalServerError {
		h.log.Error("the metrics could not be read", "err", errors.Join(e, e.Cause))
	}
	http.Error(w, e.Text, status)
}

// seconds is t as Prometheus writes moments.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
