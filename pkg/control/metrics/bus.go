package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"thermite/pkg/control/service"
)

// figure is one figure: its name, what it is, and its labels.
func figure(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("thermite_"+name, help, labels, nil)
}

// The figures of the bus.
var (
	linkUp   = figure("bus_connected", "1 while control holds a connection to the message bus.")
	serverUp = figure("bus_server_up", "1 if the message bus's server answered this scrape.")

	serverMemory   = figure("bus_server_memory_bytes", "What the server's process holds.")
	serverClients  = figure("bus_server_clients", "Connections to the server now.")
	serverLeafs    = figure("bus_server_leafs", "Leaf nodes connected to the server now.")
	serverSlow     = figure("bus_server_slow_consumers_total", "Connections that the server ended because they read too slowly.")
	serverIn       = figure("bus_server_in_messages_total", "Messages that came to the server since it started.")
	serverOut      = figure("bus_server_out_messages_total", "Messages that went from the server since it started.")
	serverInBytes  = figure("bus_server_in_bytes_total", "Bytes that came to the server since it started.")
	serverOutBytes = figure("bus_server_out_bytes_total", "Bytes that went from the server since it started.")
	storeBytes     = figure("bus_store_bytes", "What the streams take on disk.")
	storeMax       = figure("bus_store_max_bytes", "What the streams may take on disk.")

	streamMessages  = figure("bus_stream_messages", "Messages that the stream holds.", "stream")
	streamBytes     = figure("bus_stream_bytes", "Bytes of the messages that the stream holds.", "stream")
	streamFirst     = figure("bus_stream_first_seq", "The place of the stream's first message.", "stream")
	streamLast      = figure("bus_stream_last_seq", "The place of the stream's last message.", "stream")
	consumerPending = figure("bus_consumer_pending", "Messages that the consumer has still to take.", "stream", "consumer")
	consumerUnacked = figure("bus_consumer_unacked", "Messages that the consumer took and did not ack yet.", "stream", "consumer")

	writerPublished = figure("writer_published_total", "The reports' events that control published to EVENTS since it started.")
	writerBatches   = figure("writer_batches_total", "The atomic batches that they went in.")
	writerWaiting   = figure("writer_reports_waiting", "Reports that wait for the writer's turn.")
	writerRefused   = figure("writer_refused_total", "Reports that the writer refused for now since control started.")

	applyPlace  = figure("apply_place", "The place in EVENTS that control's store applied through.")
	applyBehind = figure("apply_behind", "Messages in EVENTS that are still to apply.")
	applyUnread = figure("apply_unread_total", "Messages in EVENTS that control could not read and passed over since it started.")
	applyState  = figure("apply_state", "1 for the state that the apply is in: working, waiting or stopped.", "state")

	reportsPages = figure("reports_pages_total", "Pages of the rigs' reports since control started, by what became of them: "+
		"taken, held already, refused for good, or refused for now and handed again.", "outcome")
	reportsState = figure("reports_state", "1 for the state that the reading of reports is in: working, waiting or stopped.", "state")

	configWritten = figure("config_written_total", "Values of the rigs' config that control wrote since it started.", "key")
	configFailing = figure("config_failing", "Rigs whose value control can't make or write now.", "key")
	configTaken   = figure("config_rigs_taken_total", "Values that the rigs' supervisors said last they took since they started.")
	configRefused = figure("config_rigs_refused_total", "Messages of their config that they said they could not take.")

	liveLines    = figure("live_lines_total", "Live lines that control took since it started.")
	liveMissed   = figure("live_missed_total", "Live lines that did not come to control, by their numbers.")
	liveRefused  = figure("live_refused_total", "Messages of live lines that control refused since it started, by why.", "reason")
	liveWatching = figure("live_watching", "Pages and programs that watch live lines now.")

	usersRigs  = figure("bus_users_rigs", "Rigs that may sign in to the message bus.")
	usersTaken = figure("bus_users_taken_timestamp_seconds", "When the server last took the users file.")
	usersUp    = figure("bus_users_taken", "1 if the server has taken the users file as it is now.")
)

// bus collects one moment's state of the bus.
type bus struct{ state service.BusState }

// Describe implements prometheus.Collector. The figures depend on the state,
// so none is said before.
func (b *bus) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (b *bus) Collect(out chan<- prometheus.Metric) {
	s := b.state
	gauge(out, linkUp, one(s.Link.State == service.LinkConnected))
	gauge(out, serverUp, one(s.Server != nil))
	if s.Server != nil {
		collectServer(out, s.Server)
	}
	count(out, writerPublished, s.Writer.Published)
	count(out, writerBatches, s.Writer.Batches)
	gauge(out, writerWaiting, float64(s.Writer.Waiting))
	count(out, writerRefused, s.Writer.Refused)
	gauge(out, applyPlace, float64(s.Apply.Place))
	gauge(out, applyBehind, float64(s.Apply.Behind))
	count(out, applyUnread, s.Apply.Unread)
	count(out, reportsPages, s.Reports.Taken, "taken")
	count(out, reportsPages, s.Reports.Held, "held")
	count(out, reportsPages, s.Reports.Refused, "refused")
	count(out, reportsPages, s.Reports.ForNow, "refused_for_now")
	for _, state := range []string{service.PartWorking, service.PartWaiting, service.PartStopped} {
		gauge(out, applyState, one(s.Apply.State == state), state)
		gauge(out, reportsState, one(s.Reports.State == state), state)
	}
	for _, k := range s.Config.Keys {
		count(out, configWritten, k.Written, k.Key)
		gauge(out, configFailing, float64(k.Failing), k.Key)
	}
	count(out, configTaken, s.Config.Taken)
	count(out, configRefused, s.Config.Refused)
	count(out, liveLines, s.Live.Lines)
	count(out, liveMissed, s.Live.Missed)
	for why, n := range s.Live.RefusedBy {
		count(out, liveRefused, n, why)
	}
	gauge(out, liveWatching, float64(s.Live.Watching))
	gauge(out, usersRigs, float64(s.Users.Rigs))
	gauge(out, usersUp, one(s.Users.Error == ""))
	if !s.Users.TakenAt.IsZero() {
		gauge(out, usersTaken, seconds(s.Users.TakenAt.Time()))
	}
}

func collectServer(out chan<- prometheus.Metric, s *service.Server) {
	gauge(out, serverMemory, float64(s.MemoryBytes))
	gauge(out, serverClients, float64(s.Clients))
	gauge(out, serverLeafs, float64(s.Leafs))
	count(out, serverSlow, s.SlowConsumers)
	count(out, serverIn, s.InMessages)
	count(out, serverOut, s.OutMessages)
	count(out, serverInBytes, s.InBytes)
	count(out, serverOutBytes, s.OutBytes)
	gauge(out, storeBytes, float64(s.StoreBytes))
	gauge(out, storeMax, float64(s.StoreMaxBytes))
	for _, st := range s.Streams {
		gauge(out, streamMessages, float64(st.Messages), st.Name)
		gauge(out, streamBytes, float64(st.Bytes), st.Name)
		gauge(out, streamFirst, float64(st.FirstSeq), st.Name)
		gauge(out, streamLast, float64(st.LastSeq), st.Name)
		for _, c := range st.Consumers {
			if !lasting(c.Name) {
				continue
			}
			gauge(out, consumerPending, float64(c.Pending), st.Name, c.Name)
			gauge(out, consumerUnacked, float64(c.Unacked), st.Name, c.Name)
		}
	}
}

// lasting says whether the consumer is control's or a rig's own. One that
// reads a page of events is gone a moment later, and its name never comes
// again: a series for each would only fill Prometheus.
func lasting(consumer string) bool {
	return strings.HasPrefix(consumer, "control-") || strings.HasPrefix(consumer, "rig-")
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func count[N int64 | uint64](out chan<- prometheus.Metric, d *prometheus.Desc, n N, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
