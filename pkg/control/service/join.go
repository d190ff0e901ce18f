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
