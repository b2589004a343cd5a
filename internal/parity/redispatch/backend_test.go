//go:build linux

package redispatch

import (
	"bytes"
	"net"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// Without a proxy between them, the client sees each behaviour as it is.
func TestClientSeesBackend(t *testing.T) {
	get := Request{Method: "GET"}
	head := Request{Method: "HEAD"}
	post := Request{Method: "POST", BodyLen: 20000}
	impatient := Request{Method: "GET", AbortAfter: 50}
	for _, tc := range []struct {
		behaviour string
		request   Request
		want      answer
		connected int
		arrived   []Body
	}{
		{"ok", get, answer{status: "200", servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"ok", head, answer{status: "200", servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"ok", post, answer{status: "200", servedBy: "A"}, 1, []Body{{"A", 20000}}},
		{"status:503", get, answer{status: "503", servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"slow_header:30", get, answer{status: "200", servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"slow_header:200", impatient, answer{status: Aborted}, 1, []Body{{"A", 0}}},
		{"slow_status:503:10", get, answer{status: "503", servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"slow_close:10", get, answer{status: Closed}, 1, []Body{{"A", 0}}},
		{"reset_on_accept", get, answer{status: Closed}, 1, nil},
		{"close_before_response", post, answer{status: Closed}, 1, []Body{{"A", 20000}}},
		{"reset_before_response", post, answer{status: Closed}, 1, []Body{{"A", 20000}}},
		{"garbage_status", get, answer{status: HTTP09}, 1, []Body{{"A", 0}}},
		{"hang", impatient, answer{status: Aborted}, 1, []Body{{"A", 0}}},
		{"stall_body", Request{Method: "PUT", BodyLen: 10, AbortAfter: 50}, answer{status: Aborted}, 1, []Body{{"A", unread}}},
		{"close_mid_body", get, answer{status: Truncated, httpStatus: 200, servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"reset_mid_body", get, answer{status: Truncated, httpStatus: 200, servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"close_mid_chunked", get, answer{status: Truncated, httpStatus: 200, servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"reset_mid_body", head, answer{status: "200", servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"early_response", Request{Method: "PUT", BodyLen: 10}, answer{status: "500", servedBy: "A"}, 1, []Body{{"A", unread}}},
		{"ok_close:20", get, answer{status: "200", servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"ok_rst:20", get, answer{status: "200", servedBy: "A"}, 1, []Body{{"A", 0}}},
		{"ok_conn_close", get, answer{status: "200", servedBy: "A"}, 1, []Body{{"A", 0}}},
	} {
		t.Run(tc.behaviour+"/"+tc.request.Method, func(t *testing.T) {
			t.Parallel()
			j := &journal{connections: map[string]int{}}
			b := startBackend(t, j, tc.behaviour)
			got, err := send(b.port.Addr(), 7, tc.request)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			b.close()

			require.Equal(t, tc.connected, j.connections["A"])
			require.Empty(t, j.problems)
			var arrived []Body
			for _, a := range j.arrivals {
				require.Equal(t, 7, a.step)
				arrived = append(arrived, Body{a.backend, a.bytes})
			}
			require.Equal(t, tc.arrived, arrived)
		})
	}
}

// What breaks off within the header is no answer at all.
func TestClientSeesPartOfHeader(t *testing.T) {
	for _, behaviour := range []string{"close_mid_header", "reset_mid_header", "invalid_header"} {
		b := startBackend(t, &journal{connections: map[string]int{}}, behaviour)
		got, err := send(b.port.Addr(), 0, Request{Method: "GET"})
		require.NoError(t, err)
		require.Equal(t, Truncated, got.status, behaviour)
		require.NotEmpty(t, got.problem, behaviour)
		b.close()
	}
}

func startBackend(t *testing.T, j *journal, queue ...string) *backend {
	b, err := newBackend("A", false, j)
	require.NoError(t, err)
	require.NoError(t, b.set(queue))
	return b
}

func TestBackendOpensAndCloses(t *testing.T) {
	j := &journal{connections: map[string]int{}}
	b := startBackend(t, j, "refuse")
	defer b.close()
	dial := func() error {
		c, err := net.DialTimeout("tcp4", b.port.Addr(), 150*time.Millisecond)
		if err == nil {
			c.Close()
		}
		return err
	}
	refused := func() { require.ErrorIs(t, dial(), syscall.ECONNREFUSED) }
	hangs := func() {
		for range 3 {
			var timeout net.Error
			err := dial()
			require.ErrorAs(t, err, &timeout, "the SYN must be dropped")
			require.True(t, timeout.Timeout(), err)
		}
	}
	refused()
	require.NoError(t, b.set([]string{"ok"}))
	require.NoError(t, dial())
	require.NoError(t, b.set([]string{"refuse"}))
	refused()
	require.NoError(t, b.set([]string{"connect_hang"}))
	hangs()
	require.NoError(t, b.set([]string{"ok"}))
	require.NoError(t, dial())
	require.NoError(t, b.set([]string{"connect_hang"}))
	hangs()
}

func TestBackendKeepsConnection(t *testing.T) {
	j := &journal{connections: map[string]int{}}
	b, err := newBackend("A", true, j)
	require.NoError(t, err)
	require.NoError(t, b.set([]string{"ok"}))
	conn, err := net.Dial("tcp4", b.port.Addr())
	require.NoError(t, err)
	defer conn.Close()
	for range 3 {
		_, err := conn.Write(requestHeader(0, Request{Method: "HEAD"}))
		require.NoError(t, err)
		buf := make([]byte, 1000)
		n, err := conn.Read(buf)
		require.NoError(t, err)
		require.Contains(t, string(buf[:n]), "X-Backend: A\r\n")
		require.NotContains(t, string(buf[:n]), "Connection")
	}
	b.close()
	require.Len(t, j.arrivals, 3)
	require.Equal(t, 1, j.connections["A"])
}

// A body that is sent again from the wrong place is noticed.
func TestPattern(t *testing.T) {
	whole := patternBody(1000)
	for _, tc := range []struct {
		name string
		body []byte
		want bool
	}{
		{"whole", whole, true},
		{"from the middle", whole[10:], false},
		{"a part twice", append(append([]byte{}, whole[:10]...), whole...), false},
	} {
		n, right, err := readPattern(iotest.HalfReader(bytes.NewReader(tc.body)))
		require.NoError(t, err)
		require.Equal(t, len(tc.body), n, tc.name)
		require.Equal(t, tc.want, right, tc.name)
	}
}
