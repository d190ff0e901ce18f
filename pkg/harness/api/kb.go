package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"thermite/pkg/harness/kb"
	"thermite/pkg/wire"
)

// KBQueue is what trials ask of the knowledge base.
type KBQueue interface {
	// Take gives the asks that nobody took, once there are some or the wait
	// is over.
	Take(ctx context.Context, wait time.Duration) (wire.KBAsks, error)
	Answer(a wire.KBAnswered)
	Stop()
}

// KBOutbox has the files that control is not known to keep.
type KBOutbox interface {
	List() (wire.KBOutbox, error)
	Open(sha256 string) (*os.File, error)
	Kept(sums []string) error
}

// kbRoutes are there where there is a knowledge base to reach.
func (s *Server) kbRoutes() {
	if s.cfg.KBQueue == nil {
		return
	}
	s.route(http.MethodGet, wire.HarnessKBAsksPath, s.getKBAsks)
	s.route(http.MethodPost, wire.HarnessKBAnswersPath, s.postKBAnswer)
	s.route(http.MethodGet, wire.HarnessKBFilesPath, s.getKBFiles)
	s.route(http.MethodPost, wire.HarnessKBKeptPath, s.postKBKept)
	s.mux.HandleFunc(http.MethodGet+" "+wire.HarnessKBFilesPath+"/{sha256}", s.getKBFile)
}

// getKBAsks: what trials ask, once they do.
func (s *Server) getKBAsks(r *http.Request) ([]byte, error) {
	q, err := parseQuery(r.URL, "wait")
	if err != nil {
		return nil, err
	}
	wait := time.Duration(0)
	if text, ok := q["wait"]; ok {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 || wait > wire.MaxTrialWait {
			return nil, badQuery("wait %q is no time from 0s to %v", clip(text), wire.MaxTrialWait)
		}
	}
	asks, err := s.cfg.KBQueue.Take(r.Context(), wait)
	if err != nil {
		return nil, err
	}
	return wire.EncodeKBAsks(asks)
}

// postKBAnswer: control's answer to one.
func (s *Server) postKBAnswer(r *http.Request) ([]byte, error) {
	b, err := bodyOf(r, wire.MaxKBAnswered)
	if err != nil {
		return nil, err
	}
	a, err := wire.DecodeKBAnswered(b)
	if err != nil {
		return nil, badBody(err)
	}
	s.cfg.KBQueue.Answer(a)
	return []byte("{}"), nil
}

// getKBFiles: the outbox.
func (s *Server) getKBFiles(r *http.Request) ([]byte, error) {
	if _, err := parseQuery(r.URL); err != nil {
		return nil, err
	}
	list, err := s.cfg.KBOutbox.List()
	if err != nil {
		return nil, err
	}
	return wire.EncodeKBOutbox(list)
}

// postKBKept: files that control keeps.
func (s *Server) postKBKept(r *http.Request) ([]byte, error) {
	b, err := bodyOf(r, wire.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	k, err := wire.DecodeKBKept(b)
	if err != nil {
		return nil, badBody(err)
	}
	return []byte("{}"), s.cfg.KBOutbox.Kept(k.Files)
}

// getKBFile: a file's bytes.
func (s *Server) getKBFile(w http.ResponseWriter, r *http.Request) {
	sum := r.PathValue("sha256")
	f, err := s.openKBFile(r, sum)
	if err != nil {
		s.refuse(w, r, problemOf(err))
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		s.refuse(w, r, problemOf(err))
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	// Who asked may have gone; there is nobody left to tell.
	_, _ = io.Copy(w, f)
}

func (s *Server) openKBFile(r *http.Request, sum string) (*os.File, error) {
	if _, err := parseQuery(r.URL); err != nil {
		return nil, err
	}
	none := &wire.HarnessProblem{Status: http.StatusNotFound, Code: wire.CodeNotFound, Detail: "the outbox has no file " + clip(sum)}
	if !wire.IsSHA256(sum) {
		return nil, none
	}
	f, err := s.cfg.KBOutbox.Open(sum)
	if errors.Is(err, kb.ErrNoFile) {
		return nil, none
	}
	return f, err
}

// bodyOf reads a body of so many bytes at most.
func bodyOf(r *http.Request, most int64) ([]byte, error) {
	if _, err := parseQuery(r.URL); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	if err == nil && int64(len(b)) > most {
		err = errors.New("the body has more than " + strconv.FormatInt(most, 10) + " bytes")
	}
	if err != nil {
		return nil, badBody(err)
	}
	return b, nil
}
