package trialapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// A route answers one method of a path; rest is what follows the path.
type route struct {
	method, path string
	// below: the path has something after it, which is rest.
	below bool
	serve func(s *Server, c call, rest string) (answer, error)
	// allow is set for a path that is there, and does not take the method.
	allow string
}

var routes = []route{
	{method: http.MethodGet, path: wire.TrialPath, serve: (*Server).getTrial},
	{method: http.MethodGet, path: wire.TrialNoticesPath, serve: (*Server).getNotices},
	{method: http.MethodPost, path: wire.TrialProgressPath, serve: (*Server).postProgress},
	{method: http.MethodPost, path: wire.TrialLivePath, serve: (*Server).postLive},
	{method: http.MethodGet, path: wire.TrialFilesPath, serve: (*Server).getFiles},
	{method: http.MethodGet, path: wire.TrialFilesPath, below: true, serve: (*Server).getFile},
	{method: http.MethodPut, path: wire.TrialFilesPath, below: true, serve: (*Server).putFile},
	{method: http.MethodDelete, path: wire.TrialFilesPath, below: true, serve: (*Server).deleteFile},
	{method: http.MethodGet, path: wire.TrialAttemptsPath, serve: (*Server).getAttempts},
	{method: http.MethodPost, path: wire.TrialAttemptsPath, serve: (*Server).postAttempt},
	{method: http.MethodGet, path: wire.TrialAttemptsPath, below: true, serve: (*Server).getAttempt},
	{method: http.MethodPut, path: wire.TrialKBFilesPath, below: true, serve: (*Server).putKBFile},
	{method: http.MethodPost, path: wire.TrialKBItemsPath, serve: (*Server).postKBItem},
	{method: http.MethodGet, path: wire.TrialKBItemsPath, below: true, serve: (*Server).getKBItem},
	{method: http.MethodPost, path: wire.TrialKBSearchPath, serve: (*Server).postKBSearch},
}

// find gives the route of a call. Paths are taken as they are sent: nothing
// is cleaned, so that nothing turns into another path.
func find(r *http.Request) (found route, rest string, err error) {
	path := r.URL.EscapedPath()
	var allow []string
	for _, one := range routes {
		after, ok := strings.CutPrefix(path, one.path)
		if one.below {
			after, ok = strings.CutPrefix(path, one.path+"/")
		}
		switch {
		case !ok || !one.below && after != "":
		case one.method != r.Method:
			allow = append(allow, one.method)
		default:
			return one, after, nil
		}
	}
	if len(allow) > 0 {
		found.allow = strings.Join(allow, ", ")
		return found, "", problem(wire.TrialMethod, "%s takes %s, not %s", clip(r.URL.Path), found.allow, clip(r.Method))
	}
	return found, "", problem(wire.TrialNotFound, "the trial API has no path %s", clip(r.URL.Path))
}

// getTrial: what its worker is told, without its token.
func (s *Server) getTrial(c call, _ string) (answer, error) {
	if err := query(c).none(); err != nil {
		return answer{}, err
	}
	t := c.trial.Trial
	t.Token = ""
	return answer{status: http.StatusOK, value: t}, nil
}

// getNotices: what its owner says, and whether it must stop.
func (s *Server) getNotices(c call, _ string) (answer, error) {
	q := query(c)
	after, wait := q.number("after"), q.wait()
	if err := q.done(); err != nil {
		return answer{}, err
	}
	over, stop := timer(wait)
	defer stop()
	for {
		n, told := c.trial.notices(after)
		if n.Stop || len(n.Messages) > 0 {
			return answer{status: http.StatusOK, value: n}, nil
		}
		select {
		case <-told:
		case <-over:
			return answer{status: http.StatusOK, value: n}, nil
		case <-c.Context().Done():
			return answer{}, c.Context().Err()
		}
	}
}

// postProgress: what its worker is doing.
func (s *Server) postProgress(c call, _ string) (answer, error) {
	var p wire.TrialProgress
	if err := read(c, &p); err != nil {
		return answer{}, err
	}
	if err := text("text", p.Text, wire.MaxTrialProgress, false); err != nil {
		return answer{}, err
	}
	if err := s.cfg.Trials.Progress(c.Context(), c.trial.ref(), p); err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusNoContent}, nil
}

// postLive: what a person sees of it as it happens.
func (s *Server) postLive(c call, _ string) (answer, error) {
	var said wire.TrialLines
	if err := readMost(c, wire.MaxTrialLinesBody, &said); err != nil {
		return answer{}, err
	}
	if n := len(said.Lines); n > wire.MaxTrialLines {
		return answer{}, problem(wire.TrialBadBody, "lines has %d entries, at most %d", n, wire.MaxTrialLines)
	}
	for i, line := range said.Lines {
		if err := text(fmt.Sprintf("lines[%d]", i), line, wire.MaxLiveLine, false); err != nil {
			return answer{}, err
		}
	}
	if err := s.cfg.Trials.Live(c.Context(), c.trial.ref(), said); err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusNoContent}, nil
}

// getAttempts: those of its run.
func (s *Server) getAttempts(c call, _ string) (answer, error) {
	q := query(c)
	after := q.number("after")
	if err := q.done(); err != nil {
		return answer{}, err
	}
	all, err := s.cfg.Trials.Attempts(c.Context(), c.trial.ref(), after, wire.MaxTrialAttempts)
	if err != nil {
		return answer{}, s.fault(c, err)
	}
	list := wire.TrialAttempts{Attempts: make([]wire.TrialAttempt, 0, len(all))}
	for _, f := range all {
		a := View(f)
		a.Output, a.Cases = "", nil
		list.Attempts = append(list.Attempts, a)
	}
	return answer{status: http.StatusOK, value: list}, nil
}

// getAttempt: one, once it has a verdict or the wait is over.
func (s *Server) getAttempt(c call, rest string) (answer, error) {
	n, ok := number(rest)
	if !ok || n == 0 {
		return answer{}, problem(wire.TrialNotFound, "%q is no attempt's number", clip(rest))
	}
	q := query(c)
	wait := q.wait()
	if err := q.done(); err != nil {
		return answer{}, err
	}
	over, stop := timer(wait)
	defer stop()
	for {
		f, changed, err := s.cfg.Trials.Attempt(c.Context(), c.trial.ref(), n)
		if err != nil {
			return answer{}, s.fault(c, err)
		}
		if f.Verdict != nil || wait == 0 {
			return answer{status: http.StatusOK, value: View(f)}, nil
		}
		select {
		case <-changed:
		case <-over:
			return answer{status: http.StatusOK, value: View(f)}, nil
		case <-c.Context().Done():
			return answer{}, c.Context().Err()
		}
	}
}

// postAttempt: the lane, as it is, to be judged.
func (s *Server) postAttempt(c call, _ string) (answer, error) {
	var submit wire.Submit
	if err := read(c, &submit); err != nil {
		return answer{}, err
	}
	if err := text("title", submit.Title, wire.MaxTrialTitle, true); err != nil {
		return answer{}, err
	}
	if err := text("why", submit.Why, wire.MaxTrialWhy, false); err != nil {
		return answer{}, err
	}
	if err := c.trial.stopping(); err != nil {
		return answer{}, err
	}
	if !c.trial.submitting.TryLock() {
		return answer{}, problem(wire.TrialTooMany, "a submit of this trial is under way: wait for its answer")
	}
	defer c.trial.submitting.Unlock()
	if !c.trial.submits.Allow() {
		return answer{}, problem(wire.TrialTooMany, "more than %d submits at once, or %g a second: wait a moment", submitsAtOnce, s.cfg.SubmitsEach)
	}
	done, err := s.cfg.Trials.Submit(c.Context(), c.trial.ref(), submit)
	if err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusCreated, value: done}, nil
}

// getFiles: its lane's plain files.
func (s *Server) getFiles(c call, _ string) (answer, error) {
	if err := query(c).none(); err != nil {
		return answer{}, err
	}
	entries, err := s.cfg.Files.List(c.Context(), c.trial.Trial.Lane)
	if err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusOK, value: c.trial.list(entries)}, nil
}

// getFile: a file's bytes.
func (s *Server) getFile(c call, rest string) (answer, error) {
	path, err := filePath(c, rest)
	if err != nil {
		return answer{}, err
	}
	b, err := s.cfg.Files.ReadFile(c.Context(), c.trial.Trial.Lane, path)
	if err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusOK, bytes: b}, nil
}

// putFile writes a file.
func (s *Server) putFile(c call, rest string) (answer, error) {
	path, err := filePath(c, rest)
	if err != nil {
		return answer{}, err
	}
	if err := c.trial.stopping(); err != nil {
		return answer{}, err
	}
	b, err := body(c, kit.MaxFileBytes)
	if err != nil {
		return answer{}, err
	}
	if err := s.cfg.Files.WriteFile(c.Context(), c.trial.Trial.Lane, path, b); err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusNoContent}, nil
}

// deleteFile removes a file.
func (s *Server) deleteFile(c call, rest string) (answer, error) {
	path, err := filePath(c, rest)
	if err != nil {
		return answer{}, err
	}
	if err := c.trial.stopping(); err != nil {
		return answer{}, err
	}
	if err := s.cfg.Files.RemoveFile(c.Context(), c.trial.Trial.Lane, path); err != nil {
		return answer{}, s.fault(c, err)
	}
	return answer{status: http.StatusNoContent}, nil
}

// filePath reads a file's path, each name of which is one segment.
func filePath(c call, rest string) (string, error) {
	if err := query(c).none(); err != nil {
		return "", err
	}
	names := strings.Split(rest, "/")
	for i, name := range names {
		plain, err := url.PathUnescape(name)
		if err != nil || strings.Contains(plain, "/") {
			return "", problem(wire.TrialNotFound, "path %q can't be read", clip(rest))
		}
		names[i] = plain
	}
	path := strings.Join(names, "/")
	if err := kit.CheckPath(path); err != nil {
		return "", problem(wire.TrialNotFound, "%v", err)
	}
	return path, nil
}
