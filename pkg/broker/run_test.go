package broker_test

import "testing"

func TestRuns(t *testing.T) {
	for name, w := range map[string]*world{"plain": plainWorld(t), "own": ownWorld(t)} {
		p, err := w.client.Ping(w.context())
		t.Logf("%s %+v %v", name, p, err)
		s := w.shell("id; pwd; ls -la / /tmp; cat /proc/self/status | egrep 'Cap|NoNew|Secc|Uid|Gid|Groups'; ps ax; ip a; cat; echo hi >&3")
		s.Result = true
		s.Stdin = "hello\n"
		r := w.run(s)
		t.Logf("%s %+v", name, r)
	}
}
