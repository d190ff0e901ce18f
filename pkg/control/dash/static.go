package dash

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// asset is a file that a browser loads beside a page.
type asset struct {
	// address holds a part of the content's hash, so the file at it never
	// changes.
	address, kind string
	content       []byte
}

// assets reads the files, by the name that a template says.
func assets(files fs.FS) (map[string]asset, error) {
	entries, err := fs.ReadDir(files, "static")
	if err != nil {
		return nil, err
	}
	all := map[string]asset{}
	for _, e := range entries {
		b, err := fs.ReadFile(files, "static/"+e.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		ext := path.Ext(e.Name())
		kind := mime.TypeByExtension(ext)
		if kind == "" {
			return nil, fmt.Errorf("static/%s: no media type for %s", e.Name(), ext)
		}
		name := strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		all[e.Name()] = asset{address: "/static/" + name, kind: kind, content: b}
	}
	return all, nil
}

// staticAddress gives a file's address.
func (d *Dash) staticAddress(name string) (string, error) {
	a, ok := d.static[name]
	if !ok {
		return "", fmt.Errorf("there is no static/%s", name)
	}
	return a.address, nil
}

// serveStatic serves a file. Its address changes with its content, so a
// browser may keep it.
func (d *Dash) serveStatic(w http.ResponseWriter, r *http.Request) {
	for _, a := range d.static {
		if a.address == r.URL.Path {
			w.Header().Set("Content-Type", a.kind)
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			_, _ = w.Write(a.content)
			return
		}
	}
	d.page(0, noPage).ServeHTTP(w, r)
}
