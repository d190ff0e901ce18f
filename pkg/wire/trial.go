package wire

import "time"

// The trial API: HTTP on loopback, for the worker of one trial, which sends
// its trial's token as a bearer. Bodies are JSON.
//
//	GET    /v1/trial                      Trial, without its token
//	GET    /v1/notices?after=N&wait=30s   Notices: what its owner says, and whether it must stop
//	POST   /v1/progress                   TrialProgress in
//	POST   /v1/live                       TrialLines in: what a person sees of it as it happens
//	GET    /v1/files                      TrialFiles: its lane's
//	GET    /v1/files/{path}               the file's bytes
//	PUT    /v1/files/{path}               writes it
//	DELETE /v1/files/{path}               removes it
//	POST   /v1/attempts                   Submit in, Submitted out: 201
//	GET    /v1/attempts?after=N           TrialAttempts: those of its run, oldest first, after
//	                                      attempt N: at most MaxTrialAttempts, without Output and Cases
//	GET    /v1/attempts/{n}?wait=60s      TrialAttempt, once it has a verdict or the wait is over
//	PUT    /v1/kb/files/{sha256}          keeps a file for an item, by its SHA-256 in hex: 204
//	POST   /v1/kb/items                   KBWrite in, KBWritten out: 201
//	POST   /v1/kb/search                  KBQuery in, KBHits out
//	GET    /v1/kb/items/{id}?offset=N     KBText: an item that a search found
//
// What it can't answer is a TrialProblem, application/problem+json.
const (
	TrialPath         = "/v1/trial"
	TrialNoticesPath  = "/v1/notices"
	TrialProgressPath = "/v1/progress"
	TrialLivePath     = "/v1/live"
	TrialFilesPath    = "/v1/files"
	TrialAttemptsPath = "/v1/attempts"
	TrialKBFilesPath  = "/v1/kb/files"
	TrialKBItemsPath  = "/v1/kb/items"
	TrialKBSearchPath = "/v1/kb/search"
)

// The values of TrialProblem.Code that a worker decides by.
const (
	// TrialUnauthorized: no trial that works has this token.
	TrialUnauthorized = "unauthorized"
	// TrialStopping: the trial must stop; nothing more is taken.
	TrialStopping = "stopping"
	// TrialNothing: the lane holds what the trial set out from, or what was
	// submitted before: the attempt that Attempt names.
	TrialNothing = "nothing_new"
	// TrialRefused: the candidate breaks the kit's rules; Detail says which
	// path and why.
	TrialRefused = "refused"
	// TrialBudget: the run's attempts are used.
	TrialBudget   = "budget_used"
	TrialNotFound = "not_found"
	TrialBadBody  = "bad_body"
	TrialBadQuery = "bad_query"
	TrialFailed   = "failed"
	TrialTooMany  = "too_many"
	TrialMethod   = "method_not_allowed"
	// TrialAway: control, which has the knowledge base, gave no answer.
	TrialAway = "control_away"
)

// Trial is what a worker is told: in the file that its command line names,
// which only it can read, and from the API.
type Trial struct {
	Rig        string `json:"rig"`
	Run        string `json:"run"`
	Trial      uint64 `json:"trial"`
	Lane       uint64 `json:"lane"`
	Experiment uint64 `json:"experiment"`
	// Title and Text are the experiment's.
	Title string `json:"title"`
	Text  string `json:"text,omitzero"`
	// URL is the trial API's address, such as http://127.0.0.1:8371.
	URL   string `json:"url,omitzero"`
	Token string `json:"token,omitzero"`
	// Folder is the lane's: a git clone of the project at the champion.
	Folder string `json:"folder"`
	// Kit is the kit's kit.toml, and Prompt the text of its worker's prompt.
	Kit    string `json:"kit"`
	Prompt string `json:"prompt,omitzero"`
	Metric Metric `json:"metric"`
	// Worker and Args say which worker it is; Args is the command of exec.
	Worker string   `json:"worker"`
	Args   []string `json:"args,omitzero"`
	// Seed is drawn from the run's, for this trial.
	Seed uint64 `json:"seed"`
	// Base and Champion are the scores on the public cases of the kit's base
	// and of the champion, which attempt ChampionAttempt is (0: the base).
	Base            *float64 `json:"base,omitzero"`
	Champion        *float64 `json:"champion,omitzero"`
	ChampionAttempt uint64   `json:"champion_attempt,omitzero"`
	// Most is how many attempts the trial may submit; 0 has no bound.
	Most uint64 `json:"most,omitzero"`
	// Deadline is when it is ended.
	Deadline Time `json:"deadline"`
}

// TrialProgress is what a worker is doing, in a line.
type TrialProgress struct {
	Text string `json:"text"`
}

// Notices are what a trial is told while it works.
type Notices struct {
	// Stop: it must end, and Why says why.
	Stop bool   `json:"stop"`
	Why  string `json:"why,omitzero"`
	// Messages are its owner's, after the asked one.
	Messages []Notice `json:"messages,omitzero"`
}

// Notice is one message, numbered from 1 in its trial.
type Notice struct {
	Number uint64 `json:"number"`
	Text   string `json:"text"`
}

// TrialFiles are the plain files of a lane.
type TrialFiles struct {
	Files []TrialFile `json:"files"`
}

// TrialFile is one file of a lane.
type TrialFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Editable: the kit lets a candidate change it.
	Editable bool `json:"editable"`
}

// Submit asks for the lane, as it is, to be judged.
type Submit struct {
	Title string `json:"title"`
	// Why is why the worker thinks it is better.
	Why string `json:"why,omitzero"`
}

// Submitted is the attempt that a submission became.
type Submitted struct {
	Attempt uint64 `json:"attempt"`
}

// TrialAttempts are the attempts of a run, as its workers may see them. A
// reader asks again after the last of them, until there are none.
type TrialAttempts struct {
	Attempts []TrialAttempt `json:"attempts"`
}

// TrialAttempt is an attempt as a worker may see it: of secret cases it says
// whether they were passed and nothing else.
type TrialAttempt struct {
	Attempt    uint64            `json:"attempt"`
	Trial      uint64            `json:"trial"`
	Title      string            `json:"title,omitzero"`
	Tunables   map[string]string `json:"tunables,omitzero"`
	Judged     bool              `json:"judged"`
	Outcome    string            `json:"outcome,omitzero"`
	Score      *float64          `json:"score,omitzero"`
	Why        string            `json:"why,omitzero"`
	Step       string            `json:"step,omitzero"`
	Output     string            `json:"output,omitzero"`
	Cases      []StepCase        `json:"cases,omitzero"`
	Disqualify bool              `json:"disqualified,omitzero"`
}

// TrialResult is the last line that a worker prints.
type TrialResult struct {
	// Outcome is done or failed.
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitzero"`
	// Attempts is how many it submitted.
	Attempts uint64 `json:"attempts,omitzero"`
}

// TrialProblem is an answer that is an error, as RFC 9457 has it.
type TrialProblem struct {
	Status  int    `json:"status"`
	Title   string `json:"title"`
	Detail  string `json:"detail"`
	Code    string `json:"code"`
	Attempt uint64 `json:"attempt,omitzero"`
}

// Error implements error.
func (p *TrialProblem) Error() string { return "the trial API answers " + p.Code + ": " + p.Detail }

// Bounds of the trial API: the longest that a call waits; the most attempts
// in one answer; and the lengths, in bytes, of a title, of a reason and of a
// line of progress.
const (
	MaxTrialWait     = 60 * time.Second
	MaxTrialAttempts = 1000
	MaxTrialTitle    = maxTitle
	MaxTrialWhy      = maxWhy
	MaxTrialProgress = 1000
)
