package bus

import (
	"context"
	// The server's own types are made for this package's rules.
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"thermite/pkg/wire"
)

// Admin asks the server, as control's system user.
type Admin struct {
	nc *nats.Conn

	mu sync.Mutex
	// keys are the rigs' keys as the last KeepOnly had them.
	keys map[string]string
}

// NewAdmin asks over a connection of the system user.
func NewAdmin(nc *nats.Conn) *Admin { return &Admin{nc: nc} }

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

// Reload has the server read its users and its certificate again. It returns
// once it has.
func (a *Admin) Reload(ctx context.Context) error { return a.ask(ctx, "RELOAD", nil, nil) }

// roomMargin is what CheckRoom leaves free for what others store meanwhile:
// two pages of the rigs', or an eighth of a small store.
const roomMargin = 2 * wire.MaxBusMessage

// CheckRoom says, with ErrStoreFull, that the bus's store has no room for
// msgs.
func (a *Admin) CheckRoom(ctx context.Context, msgs []*nats.Msg) error {
	var j server.JSInfo
	if err := a.ask(ctx, "JSZ", nil, &j); err != nil {
		return err
	}
	need := int64(0)
	for _, m := range msgs {
		need += int64(len(m.Subject) + MsgSize(m))
	}
	most := j.Config.MaxStore
	free := most - int64(j.Store) - min(roomMargin, most/8)
	if need > free {
		return fmt.Errorf("%w: it holds %d of its %d bytes, and %d more are to come", ErrStoreFull, j.Store, most, need)
	}
	return nil
}

// connsPage is how many connections one answer holds.
const connsPage = 1000

// clients gives every client that is connected.
func (a *Admin) clients(ctx context.Context) ([]*server.ConnInfo, error) {
	var all []*server.ConnInfo
	for {
		var page server.Connz
		opts := server.ConnzOptions{Username: true, Sort: server.ByCid, Offset: len(all), Limit: connsPage}
		if err := a.ask(ctx, "CONNZ", opts, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Conns...)
		if len(page.Conns) == 0 || len(all) >= page.Total {
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

// kick ends a connection.
func (a *Admin) kick(ctx context.Context, cid uint64) error {
	return a.ask(ctx, "KICK", server.KickClientReq{CID: cid}, nil)
}

// KeepOnly ends every connection that is not one of users, and says how many
// it ended. A reload does so for clients, but does not look at leaf nodes.
//
// The server does not tell a leaf node's key, only its account. So a leaf
// node also goes when its rig's key is not the one of the last KeepOnly, or
// there was none: one with the right key is back at once.
func (a *Admin) KeepOnly(ctx context.Context, u Users) (thrown int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
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
	a.keys = make(map[string]string)
	for _, r := range u.Rigs {
		a.keys[r.Rig] = r.Key
	}
	return thrown, nil
}

// doomed gives the connections that must go.
func (a *Admin) doomed(ctx context.Context, u Users) ([]uint64, error) {
	known := make(map[string]string)
	for key, account := range map[string]string{u.Control: AccountControl, u.Backup: AccountControl, u.System: AccountSystem} {
		known[key] = account
	}
	delete(known, "")
	keys := make(map[string]string)
	for _, r := range u.Rigs {
		known[r.Key] = r.Rig
		keys[r.Rig] = r.Key
	}
	clients, err := a.clients(ctx)
	if err != nil {
		return nil, err
	}
	leafs, err := a.leafs(ctx)
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, c := range clients {
		if account, ok := known[c.AuthorizedUser]; !ok || account != c.Account {
			out = append(out, c.Cid)
		}
	}
	for _, l := range leafs {
		if key, ok := keys[l.Account]; !ok || key != a.keys[l.Account] {
			out = append(out, l.ID)
		}
	}
	return out, nil
}
