package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

// RigPath is the rig in a path.
type RigPath struct {
	Rig string `path:"rig" doc:"The rig's name" example:"workshop"`
}

// PageQuery is a page of a list.
type PageQuery struct {
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The most entries to give"`
	After string `query:"after" maxLength:"100" doc:"The next of the page before; nothing for the first page"`
}

func (q PageQuery) query() service.PageQuery {
	return service.PageQuery{Limit: q.Limit, After: q.After}
}

// Idempotent is the header of a call that may be made again with the same key.
type Idempotent struct {
	Key string `header:"Idempotency-Key" maxLength:"200" doc:"A text of your own. The same call made again with it within 24 hours gets the same answer, and nothing is made twice."`
}

// created is the answer to a call that made something.
type created[T any] struct {
	Location string `header:"Location" doc:"Where the new thing is"`
	Body     T
}

func (a *API) rigRoutes() {
	add(a, route{method: http.MethodGet, path: "/v1/rigs", id: "list-rigs", tag: tagRigs, may: service.MayRead,
		summary: "List the rigs", more: "The rigs by name, retired ones too, each with its connection to the message bus and how far control holds its ledger."},
		func(ctx context.Context, c service.Caller, in *PageQuery) (*answerOf[service.RigList], error) {
			return answerWith(a.service.Rigs(ctx, c, in.query()))
		})

	type makeRig struct {
		Idempotent
		Body service.NewRig
	}
	add(a, route{method: http.MethodPost, path: "/v1/rigs", id: "make-rig", tag: tagRigs, may: service.MayChange, creates: true,
		summary: "Make a rig", more: "A new rig and its token, which is shown this once. A name is given once: a retired rig keeps its own.",
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *makeRig) (*created[service.RigToken], error) {
			made, err := service.Once(ctx, a.service, c, "make-rig", in.Key, in.Body, func(ctx context.Context) (service.RigToken, error) {
				return a.service.MakeRig(ctx, c, in.Body)
			})
			if err != nil {
				return nil, err
			}
			return &created[service.RigToken]{Location: "/v1/rigs/" + made.Name, Body: made}, nil
		})

	type getRig struct {
		RigPath
		Ledger string `query:"ledger" maxLength:"40" doc:"The ledger to view, when not the current one"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}", id: "get-rig", tag: tagRigs, may: service.MayRead,
		summary: "View a rig", more: "All that control shows of a rig: its connection, keys, figures, ledgers, and what its events say: runs with their queue, attempts, scores and champions."},
		func(ctx context.Context, c service.Caller, in *getRig) (*answerOf[service.RigView], error) {
			return answerWith(a.service.Rig(ctx, c, in.Rig, service.RigQuery{Ledger: in.Ledger}))
		})
	a.rigChanges()
}

func (a *API) rigChanges() {
	add(a, route{method: http.MethodPost, path: "/v1/rigs/{rig}/retire", id: "retire-rig", tag: tagRigs, may: service.MayChange,
		summary: "Retire a rig", more: "Its token is good no more and it loses its user on the message bus, at once. Its events stay.",
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *RigPath) (*answerOf[service.RigSummary], error) {
			return answerWith(a.service.RetireRig(ctx, c, in.Rig))
		})
	add(a, route{method: http.MethodPost, path: "/v1/rigs/{rig}/restore", id: "restore-rig", tag: tagRigs, may: service.MayChange,
		summary: "Bring a retired rig back", more: "It comes back with the keys and the token it had.",
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *RigPath) (*answerOf[service.RigSummary], error) {
			return answerWith(a.service.RestoreRig(ctx, c, in.Rig))
		})

	type newToken struct {
		RigPath
		Idempotent
	}
	add(a, route{method: http.MethodPost, path: "/v1/rigs/{rig}/token", id: "make-rig-token", tag: tagRigs, may: service.MayChange,
		summary: "Give a rig a new token", more: "The old one is good no more; the rig's connection to the message bus stays.",
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *newToken) (*answerOf[service.RigToken], error) {
			return answerWith(service.Once(ctx, a.service, c, "make-rig-token", in.Key, in.Rig, func(ctx context.Context) (service.RigToken, error) {
				return a.service.NewRigToken(ctx, c, in.Rig)
			}))
		})

	type acceptKey struct {
		RigPath
		Body service.KeyFingerprint
	}
	add(a, route{method: http.MethodPost, path: "/v1/rigs/{rig}/report-key", id: "accept-report-key", tag: tagRigs, may: service.MayChange,
		summary: "Accept a rig's waiting report key", more: "From then on control takes the rig's reports by this key. The fingerprint must be the waiting key's: compare it with what the harness's log says.",
		errors: []int{http.StatusConflict}, reads: true},
		func(ctx context.Context, c service.Caller, in *acceptKey) (*answerOf[service.RigSummary], error) {
			return answerWith(a.service.AcceptReportKey(ctx, c, in.Rig, in.Body.Fingerprint))
		})
}
