package rest

import (
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"thermite/pkg/control/service"
)

// mediaBytes is a file of any kind.
const mediaBytes = "application/octet-stream"

// ItemPath is an item of the knowledge base in a path.
type ItemPath struct {
	ID string `path:"id" maxLength:"20" doc:"The item's id" example:"311"`
}

func (a *API) kbRoutes() {
	type search struct {
		Words      string `query:"q" required:"true" maxLength:"500" doc:"What to find: every word, or any when no item has every one. \"Two words\" in quotes stand side by side, and word* begins with it" example:"hexagonal start"`
		Limit      int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"The most items to give"`
		After      string `query:"after" maxLength:"20" doc:"The next of the page before; nothing for the first page"`
		Collection string `query:"collection" maxLength:"40" doc:"Only items filed in this collection" example:"packing"`
		Rig        string `query:"rig" maxLength:"40" doc:"Only items from this rig" example:"workshop"`
		Run        string `query:"run" maxLength:"40" doc:"Only items of runs of this name" example:"pack26"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/kb/search", id: "search-kb", tag: tagKB, may: service.MayRead,
		summary: "Search the knowledge base", more: "Titles, texts and tags of everything that the runs learned, the best first, each with the part of it that fits best. Of words that very many items have, the newest 5,000 are ranked."},
		func(ctx context.Context, c service.Caller, in *search) (*answerOf[service.KBHitList], error) {
			return answerWith(a.service.SearchKB(ctx, c, service.KBSearch{PageQuery: service.PageQuery{Limit: in.Limit, After: in.After}, Words: in.Words,
				Collection: in.Collection, Rig: in.Rig, Run: in.Run}))
		})

	type listItems struct {
		PageQuery
		Collection string `query:"collection" maxLength:"40" doc:"Only items filed in this collection" example:"packing"`
		Rig        string `query:"rig" maxLength:"40" doc:"Only items from this rig" example:"workshop"`
		Run        string `query:"run" maxLength:"40" doc:"Only items of runs of this name" example:"pack26"`
		Slot       string `query:"slot" maxLength:"60" doc:"Only items of this writer's slot" example:"trial-3"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/kb/items", id: "list-kb-items", tag: tagKB, may: service.MayRead,
		summary: "List the items", more: "What was written to the knowledge base, the newest first, without the texts."},
		func(ctx context.Context, c service.Caller, in *listItems) (*answerOf[service.KBItemList], error) {
			return answerWith(a.service.KBItems(ctx, c, service.KBQuery{PageQuery: in.query(), Collection: in.Collection, Rig: in.Rig, Run: in.Run, Slot: in.Slot}))
		})
	add(a, route{method: http.MethodGet, path: "/v1/kb/items/{id}", id: "get-kb-item", tag: tagKB, may: service.MayRead,
		summary: "View an item", more: "Its text, and where it came from."},
		func(ctx context.Context, c service.Caller, in *ItemPath) (*answerOf[service.KBItem], error) {
			return answerWith(a.service.KBItem(ctx, c, in.ID))
		})
	add(a, route{method: http.MethodGet, path: "/v1/kb/items/{id}/file", id: "get-kb-file", tag: tagKB, may: service.MayRead, gives: mediaBytes,
		summary: "The file of an item", more: "Its bytes, as its run put them."},
		func(ctx context.Context, c service.Caller, in *ItemPath) (*huma.StreamResponse, error) {
			f, is, err := a.service.KBItemFile(ctx, c, in.ID)
			if err != nil {
				return nil, err
			}
			return &huma.StreamResponse{Body: func(ctx huma.Context) {
				defer f.Close()
				ctx.SetHeader("Content-Type", mediaBytes)
				ctx.SetHeader("Content-Length", strconv.FormatUint(is.Size, 10))
				ctx.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": is.Name}))
				// Who asked may have gone; there is nobody left to tell.
				_, _ = io.Copy(ctx.BodyWriter(), f)
			}}, nil
		})

	add(a, route{method: http.MethodGet, path: "/v1/kb/collections", id: "list-kb-collections", tag: tagKB, may: service.MayRead,
		summary: "List the collections", more: "Each has what the runs of one campaign learned. A run stays where it was filed first."},
		func(ctx context.Context, c service.Caller, _ *nothing) (*answerOf[service.KBCollectionList], error) {
			return answerWith(a.service.KBCollections(ctx, c))
		})
	type change struct {
		Collection string `path:"collection" maxLength:"40" doc:"The collection's name" example:"packing"`
		Body       service.KBChange
	}
	add(a, route{method: http.MethodPatch, path: "/v1/kb/collections/{collection}", id: "change-kb-collection", tag: tagKB, may: service.MayChange, reads: true,
		summary: "Open or close a collection", more: "Every run's agents may search and read an open one, and only those of its own campaign's runs a closed one."},
		func(ctx context.Context, c service.Caller, in *change) (*answerOf[service.KBCollection], error) {
			return answerWith(a.service.ChangeKBCollection(ctx, c, in.Collection, in.Body))
		})
}
