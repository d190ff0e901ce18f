// Package confine starts one process apart from everything else on the
// machine, without systemd. The broker starts its own program again as the
// process's init, which gives it its namespaces, waits for it and for
// everything it starts, and ends it all; init starts the program a third
// time, which takes the process's limits, user, Landlock rules and
// system-call filter upon itself and then becomes the process.
//
// A main that uses this package calls Main before anything else.
package confine
