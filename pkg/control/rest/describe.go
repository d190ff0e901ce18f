package rest

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// meanings are the fields of types that are not the service's own, by type,
// one a line. Those of every type are under the name "".
var meanings = map[string]string{
	"": `
		seq: The event's place in the EVENTS stream
		id: The event's number in its ledger
		time: When the rig recorded it
		attempt: The attempt's number in the run
		trial: The trial's number
		lane: The lane's number
		experiment: The experiment's number in the queue
		disqualified: Whether its attempt counts no more
		kind: What kind of event
		run: The run's name
		rig: The rig
		ledger: The ledger's id
		events: How many events
		why: Why, in words
		title: Its title
		worker: What works in the lane
		state: How it is
		count: How many
		score: The score the judge gave
		outcome: What the judge decided`,
	"Attempt": `
		added: Lines the candidate adds
		removed: Lines it removes
		files: Files it changes
		patch: SHA-256 of its patch
		judged_ms: How long its judging took
		step: The last step of its judging; absent before the first`,
	"Bucket": `
		start: When the minute or hour starts
		count: How many events fell in it`,
	"Budget": `
		attempts: The most attempts
		micro_dollars: The most it may spend, in millionths of a dollar
		wall_ms: The longest it may run`,
	"Champion": `
		attempt: The attempt's number; 0 is the kit's own base
		patch: SHA-256 of its patch`,
	"ConfigCount": `
		taken: Values taken
		refused: Messages that could not be`,
	"ConfigFigures": `
		taken: Values it took since it started
		refused: Messages it could not take
		subjects: Both by the subject they came on
		last_refused: Why it refused the last`,
	"Count": `
		name: What is counted`,
	"Effect": `
		center: How much better the candidate was than the champion, in the metric's unit or with relative as a fraction; more is better whatever the direction
		low: The low end of its confidence interval
		high: The high end
		confidence: The interval's confidence, such as 0.99
		least: What low must reach for a promotion
		relative: Whether the figures are fractions of the champion's
		pairs: How many pairs of runs it was taken from`,
	"Experiment": `
		added: The event that added it
		by: Who added it
		position: Where it waits, from 1; absent when it does not`,
	"Failure": `
		words: What failed, for a person`,
	"Figures": `
		build: The supervisor's version
		started_at: When this supervisor started
		relay: How far it has put its ledger on the bus
		loops: Its loops, by name
		config: What it took of the rig's config
		live: What it did with live lines; absent before it published any`,
	"KitSource": `
		embedded: The name of a kit that ships; else git and commit say where it is
		git: The https or ssh address of its repository, or for a rig that allows it a folder of the rig's machine
		commit: Its full commit
		digest: What the staged kit must come to: SHA-256, in hex`,
	"Lane": `
		started: The event that started the trial
		attempts: How many attempts it submitted`,
	"LedgerMarks": `
		first: The ledger's first event
		last: Its last event that control holds`,
	"LedgerView": `
		current: Whether it is the rig's current ledger
		failed: Set when control could not fold an event; then only ledger, last and events count
		last: The last event; absent before the first
		unread: How many events have a body that this control can't read
		kinds: The events by kind
		runs: The runs, the newest first
		recent: The newest events, at most 200, the newest first
		minutes: How many events fell in each of the newest minutes that had one, oldest first
		hours: How many fell in each of the newest hours that had one, oldest first
		check: The rig's last check of itself`,
	"Line": `
		actor: Who did it
		subject: What it is about
		summary: What happened, for a person
		unread: Whether this control can't read the event's body`,
	"LiveCounts": `
		published: Lines that it published
		dropped: Lines that it dropped`,
	"LiveFigures": `
		published: Lines that it published since it started
		dropped: Lines that it dropped: refused by the bus, or too large
		subjects: The same by subject, for the 100 that it used last`,
	"LoopFigures": `
		state: One word: working, waiting or failing
		detail: More, for a person`,
	"Metric": `
		name: What is measured
		unit: Its unit
		direction: min or max: which scores are better
		bound: A score that none can pass`,
	"Place": `
		ledger: The ledger; empty when control holds none
		cursor: The last event of it that control holds`,
	"Registered": `
		control_key: What control's answers are signed with: Ed25519, base64url
		place: Where control is in the rig's events`,
	"Registration": `
		bus_key: The supervisor's NATS user key, its public part
		seal_key: The key that the rig's config is sealed to, its public part: X25519, base64url
		figures: The supervisor's account of itself`,
	"RelayFigures": `
		ledger: The ledger it relays
		cursor: The last event of it that the bus took
		ledger_last: The ledger's last event
		pages: Pages that the bus took since the start
		refused: Pages that it refused
		last_error: Why the last round failed; empty after a good one`,
	"RigCheck": `
		ok: Whether the rig found itself well
		items: What it looked at`,
	"RigCheckItem": `
		name: What it looked at
		ok: Whether that is well`,
	"Run": `
		outcome: How it ended
		campaign: The campaign it belongs to
		kit: The kit it works on
		kit_version: The kit's version
		lane_count: How many lanes it has
		metric: What is measured
		budget: What it may use
		started: The event that started it
		ended: The event that ended it
		first: Its first event
		last: Its last event
		trials: How many trials there were
		attempts: How many attempts there were
		verdicts: The verdicts by outcome
		scores: Every attempt's score, in the judge's order
		champion: The best judged change; absent before the first
		champions: All there were, oldest first
		lanes: The trials at work now, by lane
		queue: What waits, in its order
		proposed: What waits to be accepted
		working: What is assigned to a lane
		finished: How many experiments were finished
		dropped: How many were dropped
		newest: The newest attempts, at most 100, the newest first`,
	"RunSettings": `
		lanes: How many trials may work at once
		budget: What it may use: all of it, so a bound left out is one no more`,
	"StepCase": `
		seed: The seed that the case was made from
		secret: Whether it was made for this judging, and no agent is told of it
		champion: Whether it was the champion's run, for comparison
		ok: Whether its run and its check passed
		wall_ms: How long the run took
		cpu_ms: The processor time that it used
		rss: The most memory that it held, in bytes
		values: The kit's metrics of this run, by name`,
}

// describe gives every field of the document its meaning, and lets answers
// grow: only what is sent to control may have no other field.
func describe(doc *huma.OpenAPI) {
	all := doc.Components.Schemas.Map()
	for name, s := range all {
		for field, p := range s.Properties {
			if p.Description == "" {
				p.Description = meaningOf(name, field)
			}
		}
	}
	sent := map[string]bool{}
	for _, op := range operations(doc) {
		if op.RequestBody != nil {
			follow(all, op.RequestBody.Content[mediaJSON].Schema, sent)
		}
	}
	for name, s := range all {
		if s.AdditionalProperties == false && !sent[name] {
			s.AdditionalProperties = nil
		}
	}
}

// follow marks every type that the schema names.
func follow(all map[string]*huma.Schema, s *huma.Schema, seen map[string]bool) {
	if s == nil {
		return
	}
	if name := refName(s.Ref); name != "" {
		if !seen[name] {
			seen[name] = true
			follow(all, all[name], seen)
		}
		return
	}
	follow(all, s.Items, seen)
	if of, ok := s.AdditionalProperties.(*huma.Schema); ok {
		follow(all, of, seen)
	}
	for _, p := range s.Properties {
		follow(all, p, seen)
	}
}

func refName(ref string) string { return strings.TrimPrefix(ref, "#/components/schemas/") }

// meaningOf gives a field's meaning.
func meaningOf(schema, field string) string {
	for _, name := range []string{schema, ""} {
		for line := range strings.Lines(meanings[name]) {
			if is, words, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && is == field {
				return words
			}
		}
	}
	return "" // which a test finds
}
