package rigs

import "context"

// After gives the rigs, retired ones too, whose names come after after, by
// name, at most limit.
func (r *Rigs) After(ctx context.Context, after string, limit int) ([]Rig, error) {
	page, err := r.Store.RigsAfter(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	rigs := make([]Rig, len(page))
	for i := range page {
		rigs[i] = r.shown(page[i])
	}
	return rigs, nil
}
