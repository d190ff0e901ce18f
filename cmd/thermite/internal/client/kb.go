package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"thermite/pkg/control/service"
)

// SearchKB searches the knowledge base: at most limit items, the best first.
func (c *Client) SearchKB(ctx context.Context, q service.KBSearch) (service.KBHitList, error) {
	v := url.Values{"q": {q.Words}, "limit": {strconv.Itoa(q.Limit)}}
	set(v, "collection", q.Collection)
	set(v, "rig", q.Rig)
	set(v, "run", q.Run)
	return get[service.KBHitList](ctx, c, v, "kb", "search")
}

// KBItems gives the newest items, at most limit of them; 0 gives all.
func (c *Client) KBItems(ctx context.Context, q service.KBQuery, limit int) (service.KBItemList, error) {
	all := service.KBItemList{Items: []service.KBSummary{}}
	err := c.pages(func(after string) (string, error) {
		v := pageQuery(left(limit, len(all.Items)), after)
		set(v, "collection", q.Collection)
		set(v, "rig", q.Rig)
		set(v, "run", q.Run)
		set(v, "slot", q.Slot)
		page, err := get[service.KBItemList](ctx, c, v, "kb", "items")
		all.Items = append(all.Items, page.Items...)
		return more(limit, len(all.Items), page.Next), err
	})
	return all, err
}

// KBItem gives an item with its text.
func (c *Client) KBItem(ctx context.Context, id string) (service.KBItem, error) {
	return get[service.KBItem](ctx, c, nil, "kb", "items", id)
}

// KBFile writes the file of an item, as it comes.
func (c *Client) KBFile(ctx context.Context, id string, w io.Writer) error {
	request, err := c.request(ctx, call{method: http.MethodGet, path: []string{"kb", "items", id, "file"}})
	if err != nil {
		return err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return c.broke(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
		if err != nil {
			return c.broke(ctx, err)
		}
		return c.read(answer, body, nil)
	}
	if _, err := io.Copy(w, answer.Body); err != nil {
		return c.broke(ctx, err)
	}
	return nil
}

// maxProblem is the most that is read of an answer that is no file.
const maxProblem = 1 << 20

// KBCollections gives the collections, by name.
func (c *Client) KBCollections(ctx context.Context) (service.KBCollectionList, error) {
	return get[service.KBCollectionList](ctx, c, nil, "kb", "collections")
}

// ChangeKBCollection opens a collection to every run's search, or closes it.
func (c *Client) ChangeKBCollection(ctx context.Context, name, state string) (service.KBCollection, error) {
	var out service.KBCollection
	err := c.do(ctx, call{method: http.MethodPatch, path: []string{"kb", "collections", name}, body: service.KBChange{State: state}}, &out)
	return out, err
}
