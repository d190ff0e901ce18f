package kitcheck

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"thermite/pkg/kit"
)

// Model is the model that a kit's runs call: an OpenAI-compatible address on
// this machine's loopback, which is all that a run may reach.
type Model struct{ URL, Key, Name string }

// ErrNoModel says that the kit needs a model and was given none.
var ErrNoModel = errors.New("the kit's runs call a model")

// forRuns gives a run's environment and ports, if it calls a model.
func (m Model) forRuns(r kit.Run) (env map[string]string, ports []int, err error) {
	if !r.Model {
		return nil, nil, nil
	}
	if m.URL == "" {
		return nil, nil, ErrNoModel
	}
	u, err := url.Parse(m.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("the model's address %q: %w", m.URL, err)
	}
	ip := net.ParseIP(u.Hostname())
	port, err := strconv.Atoi(u.Port())
	if err != nil || u.Scheme != "http" || ip == nil || !ip.IsLoopback() {
		return nil, nil, fmt.Errorf("the model's address %q: it may be http://127.0.0.1:PORT/v1, as a run reaches nothing else", m.URL)
	}
	return map[string]string{"OPENAI_BASE_URL": m.URL, "OPENAI_API_KEY": m.Key, "OPENAI_MODEL": m.Name}, []int{port}, nil
}
