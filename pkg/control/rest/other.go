package rest

import (
	"net/http"
	"slices"
	"strings"

	"thermite/pkg/control/service"
)

// otherRoutes answer what is no route, and a route that is not called so.
func (a *API) otherRoutes() {
	for path, methods := range a.methods {
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead)
		}
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		a.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			callOf(r.Context()).route = path
			w.Header().Set("Allow", allow)
			a.write(w, r, &service.Error{Code: service.CodeMethod, Text: "this takes " + allow + " only"})
		})
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.write(w, r, &service.Error{Code: service.CodeNoRoute, Text: "there is nothing at this path: /v1/docs says what there is"})
	})
}
