package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/port"
)

func TestShow(t *testing.T) {
	var out strings.Builder
	require.NoError(t, show(context.Background(), &out))
	require.Equal(t, 6, strings.Count(out.String(), "/hello 200 upstream_addr="), out.String())
	require.Contains(t, out.String(), `upstream_status="503, 502, 200"`)
}

// Where nobody is there the client gets nginx's answer.
func TestNobody(t *testing.T) {
	nobody, err := port.New()
	require.NoError(t, err)
	defer nobody.Close()
	up, err := newUpstream(context.Background(), []string{nobody.Addr()})
	require.NoError(t, err)
	defer up.Close()
	var out strings.Builder
	front, err := listenAnywhere()
	require.NoError(t, err)
	s := &http.Server{Handler: newProxy(up, &out)}
	go s.Serve(front)
	defer s.Close()
	resp, err := http.Get("http://" + front.Addr().String())
	require.NoError(t, err)
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	require.Equal(t, "502 Bad Gateway\n", string(body))
	http.DefaultClient.CloseIdleConnections()
	require.NoError(t, s.Shutdown(context.Background()))
	require.Contains(t, out.String(), `upstream_status="502"`)
}
