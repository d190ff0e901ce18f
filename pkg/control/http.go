package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Bounds of control's HTTP server. What a call itself may take is the API's.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	// answerTimeout is how long a call may take until its answer is out,
	// longer than any takes by itself: for who reads it too slowly.
	answerTimeout = 6 * time.Minute
	// finishWait is how long calls that go on may take to end at a stop.
	finishWait = 2 * time.Second
)

// httpPart serves handler on l until ctx ends. Calls that wait for something
// are told to end first; what goes on after finishWait is cut. ready is
// called when it serves.
func httpPart(l net.Listener, handler http.Handler, tlsConfig *tls.Config, log *slog.Logger, ready func()) func(context.Context) error {
	return func(ctx context.Context) error {
		calls, endCalls := context.WithCancel(context.WithoutCancel(ctx))
		defer endCalls()
		server := &http.Server{
			Handler: handler, TLSConfig: tlsConfig,
			ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
			BaseContext: func(net.Listener) context.Context { return calls },
			// What a stranger's connection does wrong is no one's concern.
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		}
		ended := make(chan error, 1)
		go func() {
			if tlsConfig == nil {
				ended <- server.Serve(l)
			} else {
				ended <- server.ServeTLS(l, "", "")
			}
		}()
		ready()
		select {
		case err := <-ended:
			return fmt.Errorf("serving on %s: %w", l.Addr(), err)
		case <-ctx.Done():
		}
		endCalls()
		finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWait)
		defer cancel()
		err := server.Shutdown(finish)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		<-ended
		if err != nil {
			return fmt.Errorf("ending the calls on %s: %w", l.Addr(), err)
		}
		return nil
	}
}
