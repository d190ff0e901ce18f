package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

// IDPath is an id in a path.
type IDPath struct {
	ID string `path:"id" maxLength:"20" doc:"The id" example:"3"`
}

func (a *API) recordRoutes() {
	type auditQuery struct {
		PageQuery
		Action  string `query:"action" maxLength:"100" doc:"Only entries of this action" example:"report_refused"`
		Subject string `query:"subject" maxLength:"100" doc:"Only entries about this, mostly a rig" example:"workshop"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/audit", id: "list-audit", tag: tagRecord, may: service.MayRead,
		summary: "The audit log", more: "What was done or refused, by whom, when and from where, the newest first."},
		func(ctx context.Context, c service.Caller, in *auditQuery) (*answerOf[service.AuditPage], error) {
			return answerWith(a.service.Audit(ctx, c, service.AuditQuery{PageQuery: in.query(), Action: in.Action, Subject: in.Subject}))
		})
	add(a, route{method: http.MethodGet, path: "/v1/needs", id: "list-needs", tag: tagRecord, may: service.MayRead,
		summary: "What needs the owner", more: "Everything that waits for the owner, the oldest first, with what to do about it."},
		func(ctx context.Context, c service.Caller, _ *nothing) (*answerOf[service.NeedList], error) {
			return answerWith(a.service.Needs(ctx, c))
		})
	add(a, route{method: http.MethodPost, path: "/v1/needs/{id}/seen", id: "see-need", tag: tagRecord, may: service.MayChange, noContent: true,
		summary: "Say that a need was seen", more: "It ends a need that can be seen away; others end with what they tell of.",
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *IDPath) (*nothing, error) {
			return &nothing{}, a.service.SeeNeed(ctx, c, in.ID)
		})
}

func (a *API) tokenRoutes() {
	add(a, route{method: http.MethodGet, path: "/v1/tokens", id: "list-tokens", tag: tagTokens, may: service.MayChange,
		summary: "List the tokens", more: "The owner's and the readers' tokens, revoked ones too, but never the tokens themselves."},
		func(ctx context.Context, c service.Caller, _ *nothing) (*answerOf[service.TokenList], error) {
			return answerWith(a.service.Tokens(ctx, c))
		})

	type makeToken struct {
		Idempotent
		Body service.NewToken
	}
	add(a, route{method: http.MethodPost, path: "/v1/tokens", id: "make-token", tag: tagTokens, may: service.MayChange, creates: true,
		summary: "Make a token", more: "A new token of the owner's or a reader's, which is shown this once."},
		func(ctx context.Context, c service.Caller, in *makeToken) (*created[service.MadeToken], error) {
			made, err := service.Once(ctx, a.service, c, "make-token", in.Key, in.Body, func(ctx context.Context) (service.MadeToken, error) {
				return a.service.MakeToken(ctx, c, in.Body)
			})
			if err != nil {
				return nil, err
			}
			return &created[service.MadeToken]{Location: "/v1/tokens/" + made.ID, Body: made}, nil
		})
	add(a, route{method: http.MethodDelete, path: "/v1/tokens/{id}", id: "revoke-token", tag: tagTokens, may: service.MayChange, noContent: true,
		summary: "Revoke a token", more: "It is good no more, at once, and every browser that signed in with it is signed out. The owner's last token stays.",
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *IDPath) (*nothing, error) {
			return &nothing{}, a.service.RevokeToken(ctx, c, in.ID)
		})
}
