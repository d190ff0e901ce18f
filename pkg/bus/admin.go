package bus

import (
	"context"
	// The server's own types are made for this package's rules.
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"thermite/pkg/wire"
)

// Admin asks the server, as control's system user.
type Admin struct {
	nc *nats.Conn
	// page is how many connections one answer holds.
	page int
	room room

	mu sync.Mutex
	// rigs are the rigs that the last KeepOnly had.
	rigs map[string]bool
}

// NewAdmin asks over a connection of the system user.
func NewAdmin(nc *nats.Conn) *Admin { return &Admin{nc: nc, page: connsPage} }

// adminTimeout ends a question to the server that has no answer. A reload of
// many rigs takes its time.
const adminTimeout = 20 * time.Second

// ask sends a request to the server the connection is to, and reads its
// answer's data into data.
func (a *Admin) ask(ctx context.Context, what string, request, data any) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	id := a.nc.ConnectedServerId()
	if id == "" {
		return fmt.Errorf("asking the bus's server for %s: %w", what, ErrAway)
	}
	var body []byte
	if request != nil {
		var err error
		if body, err = json.Marshal(request); err != nil {
			return fmt.Errorf("asking the bus's server for %s: %w", what, err)
		}
	}
	reply, err := a.nc.RequestWithContext(ctx, systemSubject(id, what), body)
	if err != nil {
		return fmt.Errorf("asking the bus's server for %s: %w", what, err)
	}
	answer := struct {
		Data  any              `json:"data"`
		Error *server.ApiError `json:"error"`
	}{Data: data}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return fmt.Errorf("reading the bus's server's answer for %s: %w", what, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("asking the bus's server for %s: %w", what, &RefusedError{Code: answer.Error.Code, Reason: answer.Error.Description})
	}
	return nil
}

func (a *Admin) reload(ctx context.Context) error { return a.ask(ctx, "RELOAD", nil, nil) }

// Apply has the server read its files again, the users file, which holds u,
// and the certificate, and then keeps only those users' connections. Where a
// rig is new the server reads them twice: the pinned one gives an account that
// is new nothing of what it imports until the reload after the one that
// brought it.
func (a *Admin) Apply(ctx context.Context, u Users) (thrown int, err error) {
	if err := a.reload(ctx); err != nil {
		return 0, err
	}
	if a.anyNew(u) {
		if err := a.reload(ctx); err != nil {
			return 0, err
		}
	}
	return a.KeepOnly(ctx, u)
}

// anyNew says that u has a rig that the last KeepOnly did not have.
func (a *Admin) anyNew(u Users) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range u.Rigs {
		if !a.rigs[r.Rig] {
			return true
		}
	}
	return false
}

// roomMargin is what CheckRoom leaves free for what others store meanwhile:
// two pages of the rigs', or an eighth of a small store.
const roomMargin = 2 * wire.MaxBusMessage

// roomPlenty is so much free room that nothing fills it within roomAge: the
// server is not asked again so soon.
const (
	roomPlenty = 4 << 30
	roomAge    = time.Second
)

// room is what the server last said of its store's free room.
type room struct {
	mu   sync.Mutex
	free int64
	at   time.Time
}

// plenty says that there was plenty of room for need bytes just now.
func (r *room) plenty(need int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) > roomAge || r.free-need < roomPlenty {
		return false
	}
	r.free -= need
	return true
}

func (r *room) is(free int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free, r.at = free, time.Now()
}

// CheckRoom says, with ErrStoreFull, that the bus's store has no room for
// msgs.
func (a *Admin) CheckRoom(ctx context.Context, msgs []*nats.Msg) error {
	need := int64(0)
	for _, m := range msgs {
		need += int64(len(m.Subject) + MsgSize(m))
	}
	if a.room.plenty(need) {
		return nil
	}
	var j server.JSInfo
	if err := a.ask(ctx, "JSZ", nil, &j); err != nil {
		return err
	}
	most := j.Config.MaxStore
	free := most - int64(j.Store) - min(roomMargin, most/8)
	if need > free {
		return fmt.Errorf("%w: it holds %d of its %d bytes, and %d more are to come", ErrStoreFull, j.Store, most, need)
	}
	a.room.is(free - need)
	return nil
}

// connsPage is how many connections one answer holds.
const connsPage = 1000

// connections gives every client and leaf node that is connected. Each answer
// holds some of the last one's again: a connection that goes meanwhile moves
// those after it.
func (a *Admin) connections(ctx context.Context) ([]*server.ConnInfo, error) {
	var all []*server.ConnInfo
	seen := make(map[uint64]bool)
	for offset := 0; ; offset += a.page - a.page/10 {
		var page server.Connz
		opts := server.ConnzOptions{Username: true, Sort: server.ByCid, Offset: offset, Limit: a.page}
		if err := a.ask(ctx, "CONNZ", opts, &page); err != nil {
			return nil, err
		}
		for _, c := range page.Conns {
			if !seen[c.Cid] {
				seen[c.Cid] = true
				all = append(all, c)
			}
		}
		if offset+len(page.Conns) >= page.Total || len(page.Conns) == 0 {
			return all, nil
		}
	}
}

// leafs gives every leaf node that is connected.
func (a *Admin) leafs(ctx context.Context) ([]*server.LeafInfo, error) {
	var z server.Leafz
	if err := a.ask(ctx, "LEAFZ", nil, &z); err != nil {
		return nil, err
	}
	return z.Leafs, nil
}

// kick ends a connection. One that is gone by now is ended.
func (a *Admin) kick(ctx context.Context, cid uint64) error {
	err := a.ask(ctx, "KICK", server.KickClientReq{CID: cid}, nil)
	var refused *RefusedError
	if errors.As(err, &refused) && strings.HasPrefix(refused.Reason, "no such client") {
		return nil
	}
	return err
}

// KeepOnly ends every connection that is not one of users, and says how many
// it ended. A reload does so for clients, but does not look at leaf nodes.
func (a *Admin) KeepOnly(ctx context.Context, u Users) (thrown int, err error) {
	doomed, err := a.doomed(ctx, u)
	if err != nil {
		return 0, fmt.Errorf("looking for connections to end: %w", err)
	}
	var errs []error
	for _, cid := range doomed {
		if err := a.kick(ctx, cid); err != nil {
			errs = append(errs, err)
			continue
		}
		thrown++
	}
	if len(errs) > 0 {
		return thrown, fmt.Errorf("ending %d connections: %w", len(doomed), errors.Join(errs...))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rigs = make(map[string]bool)
	for _, r := range u.Rigs {
		a.rigs[r.Rig] = true
	}
	return thrown, nil
}

// doomed gives the connections that must go: those whose key is not their
// account's, and leaf nodes that the server dialed, which show no key, of an
// account that is no rig's.
func (a *Admin) doomed(ctx context.Context, u Users) ([]uint64, error) {
	known := map[string]string{u.Control: AccountControl, u.Backup: AccountControl, u.System: AccountSystem}
	rigs := make(map[string]bool)
	for _, r := range u.Rigs {
		known[r.Key] = r.Rig
		rigs[r.Rig] = true
	}
	conns, err := a.connections(ctx)
	if err != nil {
		return nil, err
	}
	leafs, err := a.leafs(ctx)
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, c := range conns {
		// One that has not signed in yet is nobody's: the server ends it by
		// itself if it does not.
		if c.AuthorizedUser == "" {
			continue
		}
		if account, ok := known[c.AuthorizedUser]; !ok || account != c.Account {
			out = append(out, c.Cid)
		}
	}
	for _, l := range leafs {
		if !rigs[l.Account] && !slices.Contains(out, l.ID) {
			out = append(out, l.ID)
		}
	}
	return out, nil
}
