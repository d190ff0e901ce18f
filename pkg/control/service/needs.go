package service

import (
	"context"
	"errors"

	"thermite/pkg/control/needs"
	"thermite/pkg/wire"
)

// Needs gives everything that waits for the owner, oldest first.
func (s *Service) Needs(ctx context.Context, c Caller) (NeedList, error) {
	list := NeedList{Needs: []Need{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	all, err := s.config.Needs.List(ctx)
	if err != nil {
		return list, err
	}
	for _, n := range all {
		list.Needs = append(list.Needs, Need{ID: idOf(n.ID), Code: string(n.Code), Title: n.Title, Detail: n.Detail, Do: n.Do,
			Subject: n.Subject, Since: wire.At(n.Since), CanBeSeen: n.CanBeSeen})
	}
	return list, nil
}

// SeeNeed says that the owner has seen the need, which ends it.
func (s *Service) SeeNeed(ctx context.Context, c Caller, id string) error {
	if err := c.Check(MayChange); err != nil {
		return err
	}
	n, err := readID("path.id", "a need's id is a number", id)
	if err != nil {
		return newError(CodeNoNeed, "nothing with that id needs you")
	}
	switch err := s.config.Needs.Seen(ctx, n, c.actor(), c.Source); {
	case errors.Is(err, needs.ErrNoNeed):
		return newError(CodeNoNeed, "nothing with that id needs you: it may be over")
	case errors.Is(err, needs.ErrNotSeen):
		return newError(CodeNeedStays, "this one goes when what it tells of is over, not when it is seen")
	default:
		return err
	}
}
