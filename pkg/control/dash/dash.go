// Package dash is the dashboard: pages rendered here from what the service
// gives, for a person with a browser.
//
//	request ─▶ guard (id, headers, panics) ─▶ session ─▶ may they ─▶ form ─▶ service ─▶ template
//
// Guarantees: a page holds no script or style of its own and names no other
// host, and its Content-Security-Policy says so; everything works without the
// script except for what moves; every change is a POST from one of our own
// pages, by its origin and by the form's token, and goes through the service
// with who does it; an error stays on the page with what was typed.
package dash

import (
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"

	"thermite/pkg/control/service"
	"thermite/web"
)

// Options are what the dashboard is served with.
type Options struct {
	// Plain says that browsers reach it by HTTP without TLS: its cookie can
	// then have neither the Secure mark nor the __Host- prefix, which browsers
	// refuse without TLS.
	Plain bool
}

// Dash is the dashboard.
type Dash struct {
	service *service.Service
	log     *slog.Logger
	options Options
	origin  *http.CrossOriginProtection
	static  map[string]asset
	pages   map[string]*template.Template
	// markdown makes HTML of what rigs wrote.
	markdown *markdown
	handler  http.Handler
}

// New makes the dashboard. It answers / and all below it that no other
// handler takes.
func New(s *service.Service, log *slog.Logger, o Options) *Dash {
	d := &Dash{service: s, log: log, options: o, origin: http.NewCrossOriginProtection(), markdown: newMarkdown()}
	var err error
	if d.static, err = assets(web.Static); err == nil {
		d.pages, err = d.parse(web.Templates)
	}
	if err != nil {
		panic(fmt.Sprintf("the dashboard's own files: %v", err)) // they are in the binary
	}
	d.handler = d.guard(d.routes())
	return d
}

// ServeHTTP answers a request.
func (d *Dash) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// routes gives every page its address.
func (d *Dash) routes() *http.ServeMux {
	mux := http.NewServeMux()
	read := func(path string, h handler) { mux.Handle("GET "+path, d.page(service.MayRead, h)) }
	change := func(path string, h handler) { mux.Handle("POST "+path, d.page(service.MayChange, h)) }

	read("/{$}", d.home)
	read("/needs", d.needs)
	change("/needs/{id}/seen", d.seeNeed)
	read("/rigs", d.rigs)
	change("/rigs", d.makeRig)
	read("/rigs/{rig}", d.rig)
	change("/rigs/{rig}/token", d.newRigToken)
	change("/rigs/{rig}/retire", d.retireRig)
	change("/rigs/{rig}/restore", d.restoreRig)
	change("/rigs/{rig}/report-key", d.acceptKey)
	read("/rigs/{rig}/history", d.history)
	read("/rigs/{rig}/daily", d.daily)
	read("/rigs/{rig}/daily/{day}", d.dailyOf)
	read("/rigs/{rig}/space", d.space)
	change("/rigs/{rig}/space/remove", d.removeSpace)
	read("/rigs/{rig}/minutes.csv", d.minutesCSV)
	read("/rigs/{rig}/hours.csv", d.hoursCSV)
	read("/rigs/{rig}/events", d.events)
	read("/rigs/{rig}/events/{seq}", d.event)
	read("/rigs/{rig}/runs", d.runs)
	read("/rigs/{rig}/commands", d.rigCommands)
	change("/rigs/{rig}/commands/{command}/cancel", d.cancelCommand)
	d.runRoutes(read, change)
	read("/live", d.live)
	read("/live/stream", d.liveStream)
	read("/campaigns", d.campaigns)
	read("/campaigns/{campaign}", d.campaign)
	read("/campaigns/{campaign}/champions.csv", d.championsCSV)
	read("/kits", d.kits)
	read("/kits/{kit}", d.kit)
	read("/kb", d.kb)
	change("/kb/collections/{collection}", d.changeCollection)
	read("/kb/items/{id}", d.kbItem)
	read("/kb/items/{id}/file", d.kbFile)
	read("/audit", d.audit)
	read("/metrics/bus", d.bus)
	read("/settings", to("/settings/bus"))
	read("/settings/bus", d.settingsBus)
	read("/settings/authority.pem", d.authority)
	mux.Handle("GET /settings/tokens", d.page(service.MayChange, d.tokens))
	change("/settings/tokens", d.makeToken)
	change("/settings/tokens/{id}/revoke", d.revokeToken)
	read("/settings/models", d.models)
	change("/settings/models", d.setModel)
	change("/settings/models/{name}/remove", d.removeModel)
	read("/settings/mcp-servers", d.mcpServers)
	change("/settings/mcp-servers", d.setMCPServer)
	change("/settings/mcp-servers/{name}/remove", d.removeMCPServer)
	read("/settings/git-accesses", d.gitAccesses)
	change("/settings/git-accesses", d.setGitAccess)
	change("/settings/git-accesses/{name}/remove", d.removeGitAccess)
	read("/settings/about", d.about)

	mux.Handle("GET /signin", d.page(service.MayAnyone, d.signInForm))
	mux.Handle("POST /signin", d.page(service.MayAnyone, d.signIn))
	mux.Handle("POST /signout", d.page(service.MayRead, d.signOut))
	mux.HandleFunc("GET /static/{name}", d.serveStatic)
	mux.Handle("/", d.page(service.MayAnyone, noPage))
	return mux
}

// runRoutes gives every page of a run, and each form on it, its address.
func (d *Dash) runRoutes(read, change func(string, handler)) {
	read("/runs", d.allRuns)
	change("/runs", d.startRun)
	read("/runs/new", d.startRunForm)
	const run = "/rigs/{rig}/runs/{run}"
	read(run, d.tab(tabOverview))
	read(run+"/queue", d.tab(tabQueue))
	read(run+"/attempts", d.tab(tabAttempts))
	read(run+"/attempts/{attempt}", d.attempt)
	read(run+"/attempts/{attempt}/patch", d.patch)
	read(run+"/champions", d.tab(tabChampions))
	read(run+"/prompts", d.tab(tabPrompts))
	read(run+"/prompts/{seq}", d.prompt)
	read(run+"/knowledge", d.tab(tabKnowledge))
	read(run+"/history", d.tab(tabHistory))
	read(run+"/live", d.tab(tabLive))
	read(run+"/live/stream", d.liveStream)
	read(run+"/scores.csv", d.scoresCSV)
	change(run+"/pause", d.pauseRun)
	change(run+"/resume", d.resumeRun)
	change(run+"/stop", d.stopRun)
	change(run+"/settings", d.changeRun)
	change(run+"/queue", d.addExperiment)
	change(run+"/queue/{experiment}/move", d.moveExperiment)
	change(run+"/queue/{experiment}/edit", d.editExperiment)
	change(run+"/queue/{experiment}/drop", d.dropExperiment)
	read(run+"/trials/{trial}/screen", d.screen)
	change(run+"/trials/{trial}/message", d.messageTrial)
	change(run+"/trials/{trial}/stop", d.stopTrial)
	change(run+"/attempts/{attempt}/disqualify", d.disqualify)
	change(run+"/attempts/{attempt}/rejudge", d.rejudge)
}

// to leads on to another page.
func to(path string) handler {
	return func(v *visit) error { return v.goTo(path) }
}

func (d *Dash) parse(files fs.FS) (map[string]*template.Template, error) {
	base, err := template.New("base.html").Funcs(d.funcs()).ParseFS(files, "templates/base.html", "templates/parts.html", "templates/runparts.html", "templates/kbparts.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]*template.Template{}
	for _, name := range names {
		page, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if pages[pageName(name)], err = page.ParseFS(files, name); err != nil {
			return nil, err
		}
	}
	return pages, nil
}
