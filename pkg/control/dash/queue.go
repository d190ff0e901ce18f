package dash

import "thermite/pkg/control/service"

type queuePage struct {
	runFrame
}

// Last is the last position of the queue.
func (p queuePage) Last() uint64 { return uint64(len(p.Run.Queue)) }

func (v *visit) showQueue(p *problem, status int) error {
	f, err := v.runFrame(tabQueue, p)
	if err != nil {
		return err
	}
	return v.render("run-queue", status, queuePage{f})
}

// inQueue is an experiment with the page that it is on.
type inQueue struct {
	queuePage
	E service.Experiment
}

// With gives the experiment to the part of the page that shows it.
func (p queuePage) With(e service.Experiment) inQueue { return inQueue{p, e} }
