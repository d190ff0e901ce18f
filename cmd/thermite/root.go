package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"thermite/cmd/thermite/internal/settings"
)

// app is one run of the program: where it reads and writes, and what the
// flags that every command takes say.
type app struct {
	in       io.Reader
	out      io.Writer
	errs     io.Writer
	getenv   func(string) string
	now      func() time.Time
	terminal terminal

	flags settings.Flags
	json  bool
	yes   bool
	// noWait has a command that tells a rig something not wait for the outcome.
	noWait bool
}

func newApp(in io.Reader, out, errs io.Writer, getenv func(string) string) *app {
	return &app{in: in, out: out, errs: errs, getenv: getenv, now: time.Now, terminal: terminalOf(in, out)}
}

// run runs the command line args and gives the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	default:
		fmt.Fprintln(a.errs, "thermite:", plainLines(err.Error()))
	}
	return exitCode(err)
}

// exitInterrupted is what a shell has for a program that SIGINT ended.
const exitInterrupted = 130

// commands makes the commands of the root, each in the file of its noun.
var commands = []func(*app) *cobra.Command{
	upCommand,
	installCommand,
	uninstallCommand,
	rigCommand,
	runCommand,
	attemptCommand,
	championCommand,
	campaignCommand,
	kitCommand,
	kbCommand,
	liveCommand,
	commandCommand,
	modelRouteCommand,
	mcpServerCommand,
	gitAccessCommand,
	busCommand,
	mcpCommand,
	healthCommand,
	needsCommand,
	auditCommand,
	tokenCommand,
	settingsCommand,
	versionCommand,
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "thermite",
		Short: "Autonomous research on machines you own: rigs work, control keeps the record",
		Long: `Autonomous research on machines you own: rigs work, control keeps the record.

"thermite up" starts everything on this machine. The other commands ask a
control what it knows and tell it what to do; "thermite settings" shows which.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Args:              noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return wrongUse("%w\n%s --help shows how it is used", flagError(err), cmd.CommandPath())
	})
	f := root.PersistentFlags()
	f.StringVar(&a.flags.URL, "url", "", "control's address (THERMITE_URL)")
	f.StringVar(&a.flags.Token, "token", "", "the owner's or a reader's token (THERMITE_TOKEN); as a flag, others on this machine can see it")
	f.StringVar(&a.flags.Authority, "authority", "", "the certificate of the authority that signs control's (THERMITE_AUTHORITY)")
	f.StringVar(&a.flags.Config, "config", "", "the file with url, token and authority (THERMITE_CONFIG)")
	f.BoolVar(&a.json, "json", false, "answer in JSON: one document, or one a line where the command follows")
	for _, command := range commands {
		root.AddCommand(command(a))
	}
	return root
}

// flagError says what a flag may be, where its value is not of its kind.
func flagError(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	kind, known := map[string]string{
		"uint64": "a whole number, 0 or more", "int": "a whole number", "float64": "a number", "duration": "a time such as 500ms, 30s or 2m", "bool": "true or false",
	}[wrong.GetFlag().Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %q: it must be %s", wrong.GetFlag().Name, wrong.GetValue(), kind)
}

// group makes the command of a noun, whose verbs do the work.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return cmd.Help()
	}}
	c.AddCommand(verbs...)
	return c
}

// noArgs refuses arguments; a word after a noun is a verb that is not there.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		words := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
		cmd.SuggestionsMinimumDistance = 2
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			words += fmt.Sprintf("; did you mean %q?", like[0])
		}
		return wrongUse("%s\n%s --help lists them", words, cmd.CommandPath())
	}
	return wrongUse("%s takes no argument, and got %q", cmd.CommandPath(), args[0])
}

// exactly takes as many arguments as names has, each of which it names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return wrongUse("%s needs its %s\nusage: %s", cmd.CommandPath(), names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return wrongUse("%s takes %d arguments, and got %q besides\nusage: %s", cmd.CommandPath(), len(names), args[len(names)], cmd.UseLine())
		}
		return nil
	}
}

// confirm asks a person whether to go on. Without a terminal nobody can
// answer, and --yes must have been given.
func (a *app) confirm(question string) error {
	if a.yes {
		return nil
	}
	if !a.terminal.asks {
		return wrongUse("%s\nThere is no terminal to ask on; give --yes to go on", question)
	}
	fmt.Fprintf(a.errs, "%s Go on? [y/N] ", question)
	var answer string
	if _, err := fmt.Fscanln(a.in, &answer); err != nil || (answer != "y" && answer != "Y" && answer != "yes") {
		return errors.New("not done, as you said")
	}
	return nil
}

// addYes gives a command that asks before it does something the flag that
// answers.
func (a *app) addYes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "don't ask before doing it")
	return cmd
}

// warn tells a person something that is not the answer.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintln(a.errs, plainLines(fmt.Sprintf(format, args...)))
}

// fileOf gives the file behind a reader or writer, or nil.
func fileOf(x any) *os.File {
	f, _ := x.(*os.File)
	return f
}
