package service

import "context"

// Join gives what a rig's machine must know to find control and the bus. None
// of it is a secret.
func (s *Service) Join(_ context.Context, c Caller) (Join, error) {
	if err := c.Check(MayRead); err != nil {
		return Join{}, err
	}
	return s.config.Join, nil
}

// JoinRig is Join for the rig's own token.
func (s *Service) JoinRig(_ context.Context, c Caller, rig string) (Join, error) {
	if err := c.Check(MayRegister); err != nil {
		return Join{}, err
	}
	if c.Name != rig {
		return Join{}, newError(CodeNotAllowed, "this is another rig's token")
	}
	return s.config.Join, nil
}

// Authority gives the authority's certificate. A machine that joins knows its
// fingerprint, and nothing more.
func (s *Service) Authority(_ context.Context, c Caller) (Authority, error) {
	if err := c.Check(MayAnyone); err != nil {
		return Authority{}, err
	}
	return Authority{Certificate: s.config.Join.Authority, Fingerprint: s.config.Join.Fingerprint}, nil
}
