package wire

import "time"

// Sizes and counts. Bytes unless the name says otherwise.
const (
	// MaxBusMessage is the largest message on the bus, headers included:
	// the server's max_payload.
	MaxBusMessage = 8 << 20

	// MaxEventBytes is the largest event, in canonical JSON, that a ledger
	// takes. What is left up to MaxBusMessage is room for the page around a
	// single event on its way to control, and for the headers in EVENTS.
	MaxEventBytes = MaxBusMessage - 64<<10

	// MaxPageEvents is how many events a page holds at most.
	MaxPageEvents = 1000

	// MaxBatchEvents and MaxBatchBytes bound one atomic batch to EVENTS.
	MaxBatchEvents = 1000
	MaxBatchBytes  = 8 << 20

	// MaxPagesWaiting is how many pages of one rig wait in REPORTS at most.
	MaxPagesWaiting = 32

	// MaxReportsWaiting is how many reports wait for the turn of the EVENTS
	// writer; one more is refused for now.
	MaxReportsWaiting = 32

	// MaxEarlierFolds is how many folds of earlier ledgers and retired rigs
	// control keeps: those read last.
	MaxEarlierFolds = 16

	// MaxLiveRuns is how many runs' live subjects a rig's user may publish
	// on: the newest of those control's registry gives the rig.
	MaxLiveRuns = 1000

	// MaxLiveMessage is the largest message of live lines, headers included,
	// MaxLiveMessages how many of one subject the bus keeps at most, and
	// MaxLiveBytes how much of all of them.
	MaxLiveMessage  = 1 << 20
	MaxLiveMessages = 1000
	MaxLiveBytes    = 256 << 20

	// MaxLiveLine is the longest live line that a harness takes. One that has
	// no room in a message, as its characters are written longer there, is
	// dropped and counted: a line is never cut.
	MaxLiveLine = MaxLiveMessage / 2

	// MaxLiveWaiting is how many live lines wait for a page that falls behind
	// at most: of more it gets the newest so many, and how many it missed.
	MaxLiveWaiting = 500

	// MaxLiveSubjects is how many subjects a supervisor counts its live lines
	// by: those that it used last.
	MaxLiveSubjects = 100

	// MaxEventsRead is the most events one page of GET /v1/rigs/<rig>/events
	// gives.
	MaxEventsRead = 5000

	// MaxAskBytes is the largest ask or answer.
	MaxAskBytes = 1 << 20

	// MaxDailyCharacters is how many characters a rig's daily report has at
	// most.
	MaxDailyCharacters = 200_000

	// MaxScreenBytes is how much of what a trial's worker printed its screen
	// has, and MaxScreens how many of a rig's trials are watched at once: their
	// screens fit an ask, whatever is in them.
	MaxScreenBytes = 64 << 10
	MaxScreens     = 6

	// MaxSpaceItems is how many things a rig names of what it keeps, and
	// MaxSpaceGone how many an event names of what was removed.
	MaxSpaceItems = 2000
	MaxSpaceGone  = 200

	// MaxBodyBytes is the largest body of a registration, and of any other
	// call to control's API that states no limit of its own.
	MaxBodyBytes = 1 << 20

	// MaxCommandBytes is the largest command, signed.
	MaxCommandBytes = 1 << 20

	// MaxCommandsWaiting is how many commands of one rig the bus holds.
	MaxCommandsWaiting = 100

	// MaxCommandTurns is how many commands wait their turn to be published;
	// one more is held.
	MaxCommandTurns = 100

	// MaxKBChunkBytes is how much of a file one message in KB_FILES holds, and
	// MaxKBChunksWaiting how many of one rig the bus holds.
	MaxKBChunkBytes    = 1 << 20
	MaxKBChunksWaiting = 256

	// MaxKBFilesAsked is how many files one kb-files ask names.
	MaxKBFilesAsked = 500

	// MaxKBFileBytes is the largest file of an item in the knowledge base, and
	// MaxKBTextBytes how much text an item has, and one answer to a read.
	MaxKBFileBytes = 128 << 20
	MaxKBTextBytes = 256 << 10
	// MaxConfigBytes is the largest value in CONFIG, sealed and signed.
	MaxConfigBytes = 1 << 20

	// MaxSecretBytes is the largest key, token or password of a rig's config.
	MaxSecretBytes = 16 << 10

	// MaxLanes is how many trials of one run work at once at most.
	MaxLanes = 64

	// MaxDiffBytes is how much of a patch an attempt's event carries, and
	// MaxOutputBytes how much of what a step printed its event does.
	MaxDiffBytes   = 128 << 10
	MaxOutputBytes = 8 << 10

	// MaxBrokerLine is the largest line on the broker's socket.
	MaxBrokerLine = 1 << 20

	// MaxInteger is the largest integer canonical JSON carries exactly.
	MaxInteger = 1<<53 - 1
)

// Intervals and deadlines.
const (
	// PollInterval is how often a supervisor reports and sends its figures:
	// the default of THERMITE_POLL_SECONDS.
	PollInterval = 60 * time.Second

	// LiveInterval is how often a supervisor publishes its harness's new live
	// lines: the default of THERMITE_LIVE_INTERVAL_MS. LiveMaxAge is how long
	// the bus keeps them.
	LiveInterval = 3 * time.Second
	LiveMaxAge   = time.Hour

	// RegisterRetry is how long a supervisor waits between tries to register
	// its keys.
	RegisterRetry = 30 * time.Second

	// ReportRetry is how long the bus waits before it hands control a page
	// again that was refused for now.
	ReportRetry = 5 * time.Second

	// CommandAgain is how long the bus waits before it hands a supervisor a
	// command again whose outcome the harness does not have yet.
	CommandAgain = 5 * time.Second

	// CommandRetry is how often control publishes the held commands again.
	CommandRetry = 10 * time.Second

	// CommandMaxAge is how long the bus keeps a command, and knows its id.
	CommandMaxAge = 7 * 24 * time.Hour

	// RenewBefore is how long before its expiry a command is signed again,
	// RenewFor how much longer it is in force then, and RenewMost how long it
	// may be so after it was issued.
	RenewBefore = 10 * time.Minute
	RenewFor    = time.Hour
	RenewMost   = 24 * time.Hour

	// ConfigLook is how often control looks at every rig's config.
	ConfigLook = 5 * time.Second

	// ModelRoutePoll is how often a supervisor looks whether its harness has
	// the rig's config: the default of THERMITE_MODEL_ROUTE_POLL_SECONDS.
	ModelRoutePoll = 5 * time.Second

	// GitAccessWait is how long staging waits for a Git access that its
	// assignment names.
	GitAccessWait = 2 * time.Minute

	// SignInRenew is how long before its end control renews a sign-in that a
	// rig's config holds.
	SignInRenew = 10 * time.Minute

	// ApplyRetry is how long the apply waits after a failure.
	ApplyRetry = 5 * time.Second

	// KBDiskRetry is how long control waits, while its disk is at its floor,
	// before it tries again to write a chunk of a file.
	KBDiskRetry = time.Minute

	// UsersLook is how often control looks at the bus's users.
	UsersLook = 5 * time.Second

	// UsersNeed is how long the server may not have taken the users file
	// before Needs you says so.
	UsersNeed = time.Minute

	// ConsumersLook is how often control looks at every rig's consumers.
	ConsumersLook = time.Minute

	// AskTimeout ends an ask that has no answer.
	AskTimeout = 20 * time.Second

	// DailyLook is how often a supervisor looks whether a daily report is due.
	DailyLook = time.Minute

	// ScreensWatched is how often a supervisor sends the screens of watched
	// trials, and ScreensIdle how often it asks whether one is watched.
	ScreensWatched = time.Second
	ScreensIdle    = 5 * time.Second

	// SpaceEvery is how often a supervisor says what its rig keeps.
	SpaceEvery = 10 * time.Minute

	// CallTimeout ends a call over HTTPS that hangs.
	CallTimeout = 5 * time.Minute

	// DuplicateWindow is how long the server knows a message id.
	DuplicateWindow = 2 * time.Minute

	// MaxClockAhead is how far an event's time may be ahead of control's
	// clock: a page with a later one is refused until the clocks agree.
	MaxClockAhead = 10 * time.Minute
)

// BusPort is the bus's port, and LeafPort a pod's leaf node port.
const (
	BusPort  = 4222
	LeafPort = 7422
)
