package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

func (a *API) campaignRoutes() {
	add(a, route{method: http.MethodGet, path: "/v1/campaigns", id: "list-campaigns", tag: tagRuns, may: service.MayRead,
		summary: "List the campaigns", more: "A campaign groups runs of one question, on any rigs. They come by name, each with its best run."},
		func(ctx context.Context, c service.Caller, in *PageQuery) (*answerOf[service.CampaignList], error) {
			return answerWith(a.service.Campaigns(ctx, c, in.query()))
		})
	type getCampaign struct {
		Campaign string `path:"campaign" doc:"The campaign's name" example:"packing"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/campaigns/{campaign}", id: "get-campaign", tag: tagRuns, may: service.MayRead,
		summary: "View a campaign", more: "Its runs, ranked: a leaderboard for each kit and metric, as other scores can't be compared."},
		func(ctx context.Context, c service.Caller, in *getCampaign) (*answerOf[service.Campaign], error) {
			return answerWith(a.service.Campaign(ctx, c, in.Campaign))
		})
}
