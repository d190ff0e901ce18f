package mcp

import (
	"context"
	"time"

	"thermite/pkg/control/service"
)

// stateTools are the tools that read how control is, and its record.
func (m *Server) stateTools(b *book) {
	add(b, tool{name: "health", title: "Control's health", words: "Whether control, its connection to the message bus, its apply and its store are as they should be."},
		func(ctx context.Context, c service.Caller, _ nothing) (service.Health, error) {
			return m.service.Health(ctx, c)
		})
	add(b, tool{name: "bus_state", title: "The message bus", words: "The message bus as control sees it: its server, each stream with its messages and what each consumer has still to take, and control's parts on it."},
		func(ctx context.Context, c service.Caller, _ nothing) (service.BusState, error) {
			return m.service.Bus(ctx, c)
		})
	add(b, tool{name: "needs", title: "What needs the owner", words: "Everything that waits for the owner, the oldest first, with what to do about it."},
		func(ctx context.Context, c service.Caller, _ nothing) (service.NeedList, error) {
			return m.service.Needs(ctx, c)
		})
	type audit struct {
		Page
		Action  string `json:"action,omitzero" maxLength:"100" doc:"Only entries of this action, such as rig_made"`
		Subject string `json:"subject,omitzero" maxLength:"200" doc:"Only entries about this, mostly a rig"`
	}
	add(b, tool{name: "audit_log", title: "The audit log", words: "What was done or refused, by whom, when and from where, the newest first."},
		func(ctx context.Context, c service.Caller, in audit) (service.AuditPage, error) {
			return m.service.Audit(ctx, c, service.AuditQuery{PageQuery: in.query(), Action: in.Action, Subject: in.Subject})
		})
}

// kitTools are the tools that read the kits that ship.
func (m *Server) kitTools(b *book) {
	add(b, tool{name: "list_kits", title: "List the kits", words: "The problems that ship with Thermite, which a run can be started on."},
		func(ctx context.Context, c service.Caller, _ nothing) (service.KitList, error) {
			return m.service.Kits(ctx, c)
		})
	type ofKit struct {
		Kit string `json:"kit" minLength:"1" maxLength:"40" doc:"The kit's name" example:"circle-packing-26"`
	}
	add(b, tool{name: "kit", title: "View a kit", words: "A kit's statement, what a candidate may change, its metric, steps, limits and fixtures."},
		func(ctx context.Context, c service.Caller, in ofKit) (service.KitView, error) {
			return m.service.Kit(ctx, c, in.Kit)
		})
}

// commandTools are the tools that read commands.
func (m *Server) commandTools(b *book) {
	type list struct {
		Page
		Rig string `json:"rig,omitzero" maxLength:"40" doc:"Only this rig's"`
		Run string `json:"run,omitzero" maxLength:"40" doc:"Only those about a run of this name"`
	}
	add(b, tool{name: "list_commands", title: "List the commands", words: "What control told its rigs to do, the newest first, and what came of each."},
		func(ctx context.Context, c service.Caller, in list) (service.CommandList, error) {
			return m.service.Commands(ctx, c, service.CommandQuery{PageQuery: in.query(), Rig: in.Rig, Run: in.Run})
		})
	type one struct {
		OneCommand
		Wait int `json:"wait_seconds,omitzero" minimum:"0" maximum:"30" doc:"How long to wait for its outcome when there is none yet"`
	}
	add(b, tool{name: "command", title: "View a command", words: "A command and what came of it. With wait_seconds it answers as soon as its outcome is known."},
		func(ctx context.Context, c service.Caller, in one) (service.Command, error) {
			return m.service.Command(ctx, c, in.ID, time.Duration(in.Wait)*time.Second)
		})
}

// OneCommand names a command.
type OneCommand struct {
	ID string `json:"id" minLength:"1" maxLength:"40" doc:"The command's id" example:"k5ybdcuhbbfvq2evrb3n2p7u4e"`
}
