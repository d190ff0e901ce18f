package dash

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// spaceKinds say what each kind of what a rig keeps is.
var spaceKinds = map[string]string{
	wire.SpaceBuild: "Champions' builds", wire.SpaceSetup: "Kits' tools and public cases", wire.SpaceKit: "Kits' files",
	wire.SpaceRepository: "Runs' repositories", wire.SpacePatches: "Attempts' patches",
}

type spacePage struct {
	frame
	Space   service.SpaceView
	Kinds   []spaceKind
	Command *told
	Key     string
	Problem *problem
}

// spaceKind is what a rig keeps of a kind.
type spaceKind struct {
	Kind, Words      string
	Count, Free      int
	Bytes, FreeBytes uint64
}

// Used is how much of the disk is used, in percent.
func (p spacePage) Used() uint64 {
	if p.Space.DiskBytes == 0 {
		return 0
	}
	return (p.Space.DiskBytes - min(p.Space.DiskFree, p.Space.DiskBytes)) * 100 / p.Space.DiskBytes
}

// space shows what a rig keeps.
func (d *Dash) space(v *visit) error { return v.showSpace(nil, http.StatusOK) }

func (v *visit) showSpace(p *problem, status int) error {
	rig := v.r.PathValue("rig")
	s, err := v.d.service.RigSpace(v.r.Context(), v.caller, rig)
	if err != nil {
		return err
	}
	f, err := v.frame("Space of rig "+rig, "rigs")
	if err != nil {
		return err
	}
	f.Live = p == nil
	page := spacePage{frame: f, Space: s, Key: rand.Text(), Problem: p}
	if page.Command, err = v.told(); err != nil {
		return err
	}
	for _, kind := range wire.SpaceKinds {
		k := spaceKind{Kind: kind, Words: spaceKinds[kind]}
		for _, i := range s.Items {
			if i.Kind != kind {
				continue
			}
			k.Count, k.Bytes = k.Count+1, k.Bytes+i.Bytes
			if i.Removable {
				k.Free, k.FreeBytes = k.Free+1, k.FreeBytes+i.Bytes
			}
		}
		page.Kinds = append(page.Kinds, k)
	}
	return v.render("rig-space", status, page)
}

// removeSpace has the rig remove what it keeps.
func (d *Dash) removeSpace(v *visit) error {
	rig := v.r.PathValue("rig")
	var kinds []string
	for _, kind := range wire.SpaceKinds {
		if slices.Contains(v.r.PostForm["kind"], kind) {
			kinds = append(kinds, kind)
		}
	}
	var err error
	var c service.Command
	if len(kinds) == 0 {
		err = &service.Error{Code: service.CodeInvalid, Text: "choose at least one kind of what is to be removed"}
	} else {
		c, err = d.service.RemoveSpace(v.r.Context(), v.caller, rig, service.SpaceRemoval{Kinds: kinds, Why: strings.TrimSpace(v.field("why"))}, v.field("key"))
	}
	if err != nil {
		if service.ErrorOf(err).Kind() == service.KindNotFound {
			return err
		}
		p, status := v.problemOf(err)
		return v.showSpace(p, status)
	}
	return v.goTo("/rigs/" + url.PathEscape(rig) + "/space?command=" + url.QueryEscape(c.ID))
}
