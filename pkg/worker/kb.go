package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"

	"thermite/pkg/wire"
)

// WriteItem writes an item into the knowledge base, in the trial's own slot:
// one of the same key takes the place of the one before. A file that is not
// nil goes with it, by that name.
func (c *Client) WriteItem(ctx context.Context, item wire.KBWrite, name string, file []byte) (done wire.KBWritten, err error) {
	if file != nil {
		sum := sha256.Sum256(file)
		item.File = &wire.KBWriteFile{Name: name, SHA256: hex.EncodeToString(sum[:])}
		_, err := c.call(ctx, call{doing: "putting " + name, method: http.MethodPut, path: wire.TrialKBFilesPath + "/" + item.File.SHA256, bytes: file})
		if err != nil {
			return done, err
		}
	}
	err = c.json(ctx, call{doing: "writing an item", method: http.MethodPost, path: wire.TrialKBItemsPath, body: item}, &done)
	return done, err
}

// SearchKB searches the knowledge base for what the trial's run may read.
func (c *Client) SearchKB(ctx context.Context, q wire.KBQuery) (hits wire.KBHits, err error) {
	err = c.json(ctx, call{doing: "searching the knowledge base", method: http.MethodPost, path: wire.TrialKBSearchPath, body: q}, &hits)
	return hits, err
}

// ReadKB reads an item of the knowledge base, all of its text.
func (c *Client) ReadKB(ctx context.Context, id string) (wire.KBText, error) {
	var all wire.KBText
	for offset := uint64(0); ; {
		var part wire.KBText
		err := c.json(ctx, call{doing: "reading item " + id, method: http.MethodGet, path: wire.TrialKBItemsPath + "/" + url.PathEscape(id),
			query: url.Values{"offset": {strconv.FormatUint(offset, 10)}}}, &part)
		if err != nil {
			return wire.KBText{}, err
		}
		part.Text = all.Text + part.Text
		if all = part; part.Next <= offset {
			all.Next = 0
			return all, nil
		}
		offset = part.Next
	}
}
