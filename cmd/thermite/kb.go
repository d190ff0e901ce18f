package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

func kbCommand(a *app) *cobra.Command {
	return group("kb", "search what the runs learned, and read it",
		kbSearchCommand(a), kbListCommand(a), kbShowCommand(a), kbFileCommand(a), kbCollectionsCommand(a),
		kbChangeCommand(a, "open", service.KBOpen, "let every run's agents search a collection"),
		kbChangeCommand(a, "close", service.KBClosed, "let only the campaign's own runs search a collection"))
}

// kbFlags are the flags that say which items.
func kbFlags(cmd *cobra.Command, collection, rig, run *string) {
	cmd.Flags().StringVar(collection, "collection", "", "only items filed in this collection: a campaign's")
	cmd.Flags().StringVar(rig, "rig", "", "only items from this rig")
	cmd.Flags().StringVar(run, "run", "", "only items of runs of this name")
}

func kbSearchCommand(a *app) *cobra.Command {
	var q service.KBSearch
	cmd := &cobra.Command{
		Use: "search WORDS...", Short: "find items, the best first: every word, or any when none has every one", Args: cobra.MinimumNArgs(1),
		Long: `Find items, the best first: those that have every word, or any when none has every one.

'"two words"' in quotes stand side by side, and 'lat*' begins with it.`,
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			if q.Limit < 1 || q.Limit > service.MaxKBHits {
				return wrongUse("--limit is %d: 1 to %d", q.Limit, service.MaxKBHits)
			}
			q.Words = strings.Join(args, " ")
			list, err := c.SearchKB(ctx, q)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			if len(list.Hits) == 0 {
				a.warn("Nothing fits. Fewer words, or their beginnings with a star, may find more.")
			}
			if list.Any {
				a.warn("No item has every word; these have some.")
			}
			t := &table{header: []string{"ITEM", "RUN", "SLOT", "TITLE", "WHAT FITS"}, wide: []int{4, 3, 1}}
			for _, is := range list.Hits {
				t.add(is.ID, is.Rig+"/"+is.Run, is.Slot, is.Title, snippet(is.Snippet))
			}
			return a.printTable(t)
		}),
	}
	kbFlags(cmd, &q.Collection, &q.Rig, &q.Run)
	cmd.Flags().IntVar(&q.Limit, "limit", 10, "the most items")
	return cmd
}

// snippet is what fits, on one line.
func snippet(spans []service.KBSpan) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func kbListCommand(a *app) *cobra.Command {
	var (
		q     service.KBQuery
		limit int
	)
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "list the items, the newest first", Args: noArgs,
		RunE: a.calling(func(ctx context.Context, c *client.Client, _ []string) error {
			if limit < 0 {
				return wrongUse("--limit is %d: 0 is no limit", limit)
			}
			list, err := c.KBItems(ctx, q, limit)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			if len(list.Items) == 0 {
				a.warn("There is no such item. A run's first record comes as it starts.")
			}
			now := a.now()
			t := &table{header: []string{"ITEM", "WRITTEN", "RUN", "SLOT", "TITLE", "FILE"}, wide: []int{4, 2, 3}}
			for _, is := range list.Items {
				file := "-"
				if is.File != nil {
					file = is.File.Name + " " + bytesOf(int64(is.File.Size))
				}
				t.add(is.ID, a.moment(is.At.Time(), now), is.Rig+"/"+is.Run, is.Slot, is.Title, file)
			}
			return a.printTable(t)
		}),
	}
	kbFlags(cmd, &q.Collection, &q.Rig, &q.Run)
	cmd.Flags().StringVar(&q.Slot, "slot", "", "only items of this writer's slot, such as records or trial-3")
	cmd.Flags().IntVar(&limit, "limit", 20, "the most items; 0: all")
	return cmd
}

func kbShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show ITEM", Short: "show an item with its text, and where it came from", Args: exactly("item"),
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			if err := checkItem(args[0]); err != nil {
				return err
			}
			is, err := c.KBItem(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(is)
			}
			t := a.factsTable()
			t.add("item", is.ID)
			t.add("title", is.Title)
			if len(is.Tags) > 0 {
				t.add("tags", strings.Join(is.Tags, ", "))
			}
			t.add("collection", is.Collection)
			t.add("run", is.Rig+"/"+is.Run)
			t.add("written", a.moment(is.At.Time(), a.now())+" by "+is.Writer)
			t.add("slot and key", is.Slot+"/"+is.Key)
			t.add("made from", strings.ReplaceAll(is.Kind, "_", " ")+", event "+count(is.Event)+" of ledger "+is.Ledger)
			if f := is.File; f != nil {
				state := ""
				if f.State != service.KBFileKept {
					state = ", not here yet"
				}
				t.add("file", fmt.Sprintf("%s, %s%s", f.Name, bytesOf(int64(f.Size)), state))
				t.add("sha256", f.SHA256)
			}
			if err := a.printTable(t); err != nil || is.Text == "" {
				return err
			}
			_, err = fmt.Fprintf(a.out, "\n%s\n", plainLines(strings.TrimRight(is.Text, "\n")))
			return err
		}),
	}
}

func kbFileCommand(a *app) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use: "file ITEM", Short: "get the file of an item", Args: exactly("item"),
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			if err := checkItem(args[0]); err != nil {
				return err
			}
			if output == "-" {
				return c.KBFile(ctx, args[0], a.out)
			}
			is, err := c.KBItem(ctx, args[0])
			if err != nil {
				return err
			}
			name := output
			if is.File != nil && name == "" {
				name = filepath.Base(is.File.Name)
			}
			return a.getFile(ctx, c, is, name)
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "where to write it, - for standard output; its own name unless told. A file that is there is left")
	return cmd
}

// getFile writes the item's file into a new one.
func (a *app) getFile(ctx context.Context, c *client.Client, is service.KBItem, name string) error {
	if name == "" {
		name = "file" // control says that it has none
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("writing the file of item %s: %w", is.ID, err)
	}
	if err := errors.Join(c.KBFile(ctx, is.ID, f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return a.done(is, "%s: %s", name, bytesOf(int64(is.File.Size)))
}

func kbCollectionsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "collections", Short: "list the collections: what the runs of each campaign learned", Args: noArgs,
		RunE: a.calling(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.KBCollections(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			now := a.now()
			t := &table{header: []string{"COLLECTION", "STATE", "RUNS", "ITEMS", "NEWEST"}}
			for _, is := range list.Collections {
				t.add(is.Collection, is.State, strconv.Itoa(is.Runs), strconv.Itoa(is.Items), a.moment(is.Last.Time(), now))
			}
			return a.printTable(t)
		}),
	}
}

// kbChangeCommand opens or closes a collection.
func kbChangeCommand(a *app, verb, state, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " COLLECTION", Short: short, Args: exactly("collection"), ValidArgsFunction: completeFirst(a, collectionNames),
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			is, err := c.ChangeKBCollection(ctx, args[0], state)
			if err != nil {
				return err
			}
			return a.done(is, "Collection %s is %s.", is.Collection, is.State)
		}),
	}
}

// collectionNames gives a shell the collections.
func collectionNames(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	list, err := c.KBCollections(ctx)
	var names []cobra.Completion
	for _, is := range list.Collections {
		names = append(names, cobra.CompletionWithDesc(is.Collection, fmt.Sprintf("%d items, %s", is.Items, is.State)))
	}
	return names, err
}

func checkItem(id string) error {
	if !wire.IsKBID(id) {
		return wrongUse("item %q: an id is a number\nthermite kb search and thermite kb list show them", id)
	}
	return nil
}
