package dash

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"thermite/pkg/control/service"
)

// kbFilter says which items a page is about.
type kbFilter struct{ Query, Collection, Rig, Run string }

// kbFilter reads the filter of the address.
func (v *visit) kbFilter() kbFilter {
	q := v.r.URL.Query()
	return kbFilter{Query: strings.TrimSpace(q.Get("q")), Collection: q.Get("collection"), Rig: q.Get("rig"), Run: q.Get("run")}
}

// Held says whether it leaves anything out.
func (f kbFilter) Held() bool {
	return f.Query != "" || f.Collection != "" || f.Rig != "" || f.Run != ""
}

// at is the address of the page's list after an entry of it.
func (f kbFilter) at(path, after string) string {
	q := url.Values{}
	for name, value := range map[string]string{"q": f.Query, "collection": f.Collection, "rig": f.Rig, "run": f.Run, "after": after} {
		if value != "" {
			q.Set(name, value)
		}
	}
	switch {
	case len(q) == 0:
		return path
	case strings.Contains(path, "?"):
		return path + "&" + q.Encode()
	}
	return path + "?" + q.Encode()
}

// kbList is what a page lists: what a search found, or the newest items.
type kbList struct {
	Hits  []service.KBHit
	Items []service.KBSummary
	// Some says that nothing has every word that was searched for.
	Some bool
	Next string
}

// kbShown is how many items a page shows.
const kbShown = 25

// kbList lists the items of the filter, at the path.
func (v *visit) kbList(f kbFilter, path, ledger string) (kbList, error) {
	page := service.PageQuery{Limit: kbShown, After: v.r.URL.Query().Get("after")}
	var list kbList
	next := ""
	if f.Query != "" {
		found, err := v.d.service.SearchKB(v.r.Context(), v.caller, service.KBSearch{PageQuery: page, Words: f.Query, Collection: f.Collection, Rig: f.Rig, Run: f.Run})
		if err != nil {
			return list, err
		}
		list.Hits, list.Some, next = found.Hits, found.Any, found.Next
	} else {
		items, err := v.d.service.KBItems(v.r.Context(), v.caller, service.KBQuery{PageQuery: page, Collection: f.Collection, Rig: f.Rig, Run: f.Run, Ledger: ledger})
		if err != nil {
			return list, err
		}
		list.Items, next = items.Items, items.Next
	}
	if next != "" {
		list.Next = f.at(path, next)
	}
	return list, nil
}

type kbPage struct {
	frame
	kbFilter
	kbList
	Collections []service.KBCollection
	Problem     *problem
}

// kb shows the knowledge base: what was searched for, or its newest items, and
// the collections.
func (d *Dash) kb(v *visit) error { return v.showKB(nil, http.StatusOK) }

func (v *visit) showKB(p *problem, status int) error {
	f, err := v.frame("Knowledge base", "kb")
	if err != nil {
		return err
	}
	page := kbPage{frame: f, kbFilter: v.kbFilter(), Problem: p}
	page.kbList, err = v.kbList(page.kbFilter, "/kb", "")
	if e := (*service.Error)(nil); errors.As(err, &e) && e.Code == service.CodeInvalid {
		page.Problem, status = v.problemOf(err) // what was typed stays
	} else if err != nil {
		return err
	}
	all, err := v.d.service.KBCollections(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	page.Collections = all.Collections
	return v.render("kb", status, page)
}

// changeCollection opens a collection, or closes it.
func (d *Dash) changeCollection(v *visit) error {
	if _, err := d.service.ChangeKBCollection(v.r.Context(), v.caller, v.r.PathValue("collection"), service.KBChange{State: v.field("state")}); err != nil {
		p, status := v.problemOf(err)
		return v.showKB(p, status)
	}
	return v.goTo("/kb")
}

type kbItemPage struct {
	frame
	service.KBItem
}

// kbItem shows an item.
func (d *Dash) kbItem(v *visit) error {
	item, err := d.service.KBItem(v.r.Context(), v.caller, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	f, err := v.frame(shown(item.Title), "kb")
	if err != nil {
		return err
	}
	return v.ok("kb-item", kbItemPage{f, item})
}

// kbFile gives the file of an item.
func (d *Dash) kbFile(v *visit) error {
	file, is, err := d.service.KBItemFile(v.r.Context(), v.caller, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	defer file.Close()
	// Whatever it is, a browser keeps it and shows none of it.
	v.w.Header().Set("Content-Type", "application/octet-stream")
	v.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": is.Name}))
	info, err := file.Stat()
	if err != nil {
		return err
	}
	http.ServeContent(v.w, v.r, "", info.ModTime(), file)
	return nil
}

type runKBPage struct {
	runFrame
	kbList
	Query string
}

// showKnowledge shows what the run learned.
func (v *visit) showKnowledge(p *problem, status int) error {
	f, err := v.runFrame(tabKnowledge, p)
	if err != nil {
		return err
	}
	page := runKBPage{runFrame: f, Query: v.kbFilter().Query}
	page.kbList, err = v.kbList(kbFilter{Query: page.Query, Rig: f.Rig, Run: f.Run.Run}, f.To("knowledge"), f.Ledger)
	if e := (*service.Error)(nil); errors.As(err, &e) && e.Code == service.CodeInvalid {
		page.runFrame.Problem, status = v.problemOf(err)
	} else if err != nil {
		return err
	}
	return v.render("run-knowledge", status, page)
}

// shown is text without what no page can hold.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, s)
}
