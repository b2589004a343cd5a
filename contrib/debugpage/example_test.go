package debugpage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/trunklb/trunk/contrib/debugpage"
	"github.com/trunklb/trunk/peer"
)

func Example() {
	page := debugpage.New(&debugpage.Options{
		Redact: func(kind debugpage.Kind, value string) string {
			if kind == debugpage.Key || kind == debugpage.Client {
				return "(hidden)"
			}
			return value
		},
	})
	panel := page.Panel("backend")
	up, err := peer.New([]peer.Server{{Addr: "a:80", Weight: 5}, {Addr: "b:80"}}, nil, &peer.Options{OnEvent: panel.Event})
	if err != nil {
		fmt.Println(err)
		return
	}
	panel.Watch(up)
	mux := http.NewServeMux()
	mux.Handle("/debug/upstreams/", page)

	var r peer.Request
	var d peer.Decision
	if err := up.Begin(&r); err != nil {
		fmt.Println(err)
		return
	}
	if up.Explain(&r, &d) == nil {
		_ = up.Free(&r, peer.OK)
	}
	panel.Decision(&d)

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/debug/upstreams/", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
