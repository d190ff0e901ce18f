package mcp

import (
	"context"

	"thermite/pkg/control/service"
)

// maxSpaceItems is how many of the things that a rig keeps are told: the
// largest.
const maxSpaceItems = 50

// spaceTools are the tools about what a rig keeps on its disk.
func (m *Server) spaceTools(b *book) {
	add(b, tool{name: "rig_space", title: "A rig's space", words: "What a rig keeps of builds, kits, repositories and patches, as it said last: the 50 largest, and what of all of it a removal would free."},
		func(ctx context.Context, c service.Caller, in InRig) (service.SpaceView, error) {
			v, err := m.service.RigSpace(ctx, c, in.Rig)
			for _, i := range v.Items[min(len(v.Items), maxSpaceItems):] {
				v.LeftOut++
				v.LeftOutBytes += i.Bytes
			}
			v.Items = first(v.Items, maxSpaceItems)
			return v, err
		})
}

// spaceOrders are the tools that free a rig's disk.
func (m *Server) spaceOrders(b *book) {
	type remove struct {
		InRig
		service.SpaceRemoval
		Keyed
	}
	add(b, tool{name: "remove_space", title: "Free a rig's disk", changes: true, ends: true, again: true,
		words: "Has a rig remove what it keeps of builds, setups, kits, repositories and patches: nothing that an open run or a champion needs."},
		func(ctx context.Context, c service.Caller, in remove) (did, error) {
			return told(m.service.RemoveSpace(ctx, c, in.Rig, in.SpaceRemoval, in.Key))
		})
}
