package sticky_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/sticky"
)

// learner is a binding that learns, on a clock that the test sets.
type learner struct {
	*sticky.Binding
	t   *testing.T
	now time.Duration
}

func newLearner(t *testing.T, c sticky.Learn) *learner {
	l := &learner{t: t, now: 1_700_000_000 * time.Second}
	c.Create, c.Lookup = []string{"$upstream_cookie_s"}, []string{"$cookie_s", "$arg_s"}
	var err error
	l.Binding, err = sticky.New(c, &sticky.Options{Clock: func() time.Duration { return l.now }})
	require.NoError(t, err)
	return l
}

// hint is what a request with a session id asks for.
func (l *learner) hint(id string) string {
	l.t.Helper()
	sid, err := l.Hint(context.Background(), values("$cookie_s", id))
	require.NoError(l.t, err)
	return sid
}

// request is a request with a session id, empty for none, to which the peer with
// that sid answers with a new session id, empty for none.
func (l *learner) request(id, sid, created string) {
	l.t.Helper()
	v := values("$cookie_s", id, "$upstream_cookie_s", created)
	require.NoError(l.t, l.Header(context.Background(), sid, v))
	require.NoError(l.t, l.OK(context.Background(), sid, v))
}

func TestSessionIsLearned(t *testing.T) {
	for _, header := range []bool{false, true} {
		l := newLearner(t, sticky.Learn{Header: header})
		require.Empty(t, l.hint("s1"))
		l.request("", "a", "s1")
		require.Equal(t, "a", l.hint("s1"))
		require.Empty(t, l.hint("s2"))

		l.request("s1", "b", "")
		require.Equal(t, "b", l.hint("s1"), "moved to the peer that answered")
		l.request("s1", "c", "s2")
		require.Equal(t, "b", l.hint("s1"), "a new session leaves the old one alone")
		require.Equal(t, "c", l.hint("s2"))
		l.request("s3", "a", "")
		require.Empty(t, l.hint("s3"), "what no backend has created is not learned")
	}
}

// TestWhenItIsLearned tells the two moments apart: header and the request's end.
func TestWhenItIsLearned(t *testing.T) {
	ctx, v := context.Background(), values("$upstream_cookie_s", "s1")
	atEnd := newLearner(t, sticky.Learn{})
	require.NoError(t, atEnd.Header(ctx, "a", v))
	require.Empty(t, atEnd.hint("s1"))
	require.NoError(t, atEnd.OK(ctx, "a", v))
	require.Equal(t, "a", atEnd.hint("s1"))

	atHeader := newLearner(t, sticky.Learn{Header: true})
	require.NoError(t, atHeader.OK(ctx, "a", v))
	require.Empty(t, atHeader.hint("s1"))
	require.NoError(t, atHeader.Header(ctx, "a", v))
	require.Equal(t, "a", atHeader.hint("s1"))
}

func TestSessionTimesOut(t *testing.T) {
	l := newLearner(t, sticky.Learn{})
	l.request("", "a", "s1")
	l.now += sticky.DefaultTimeout - time.Millisecond
	require.Equal(t, "a", l.hint("s1"), "a look-up does not renew it")
	l.now += time.Millisecond - 1
	require.Equal(t, "a", l.hint("s1"))
	l.now++
	require.Empty(t, l.hint("s1"))
	l.request("s1", "a", "")
	require.Empty(t, l.hint("s1"), "too late to renew")

	l.request("", "a", "s1")
	for range 10 {
		l.now += sticky.DefaultTimeout - time.Millisecond
		l.request("s1", "a", "")
	}
	require.Equal(t, "a", l.hint("s1"), "while it is used it lives")
}

func TestTextsOfLookupInOrder(t *testing.T) {
	l := newLearner(t, sticky.Learn{})
	l.request("", "a", "s1")
	sid, err := l.Hint(context.Background(), values("$cookie_s", "unknown", "$arg_s", "s1"))
	require.NoError(t, err)
	require.Empty(t, sid, "the first that is not empty counts")
	sid, err = l.Hint(context.Background(), values("$arg_s", "s1"))
	require.NoError(t, err)
	require.Equal(t, "a", sid)
}

// TestHostileSessions says that an id beyond all measure is none.
func TestHostileSessions(t *testing.T) {
	l := newLearner(t, sticky.Learn{})
	long := strings.Repeat("s", sticky.MaxSessionID)
	l.request("", "a", long)
	require.Equal(t, "a", l.hint(long))
	l.request("", "b", long+"s")
	require.Empty(t, l.hint(long+"s"))
	l.request(long, "c", long+"s")
	require.Equal(t, "c", l.hint(long), "one that is too long is like none")
}

// TestCapacity says how many sessions fit.
func TestCapacity(t *testing.T) {
	tests := []struct {
		name   string
		config sticky.Learn
		want   int
	}{
		{"of a zone of 64k", sticky.Learn{ZoneSize: 64 << 10}, 256},
		{"a capacity wins over the zone", sticky.Learn{ZoneSize: 64 << 10, Capacity: 3}, 3},
		{"of a zone too small for one", sticky.Learn{ZoneSize: 1}, 1},
		{"of nothing", sticky.Learn{}, sticky.DefaultCapacity},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newLearner(t, test.config)
			name := func(i int) string { return strings.Repeat("i", i%300) + time.Duration(i).String() }
			for i := range test.want + 1 {
				l.request("", "a", name(i))
			}
			require.Empty(t, l.hint(name(0)), "the least recently used one goes")
			for i := 1; i <= test.want; i++ {
				require.Equal(t, "a", l.hint(name(i)))
			}
		})
	}
}

var errRemote = errors.New("the table is out of reach")

// remote is a Table that is out of reach.
type remote struct{}

func (remote) Lookup(context.Context, sticky.ID) (string, error)             { return "a", errRemote }
func (remote) Store(context.Context, sticky.ID, string, time.Duration) error { return errRemote }
func (remote) Renew(ctx context.Context, _ sticky.ID, _ string, _ time.Duration) error {
	return ctx.Err()
}

// TestTableErrors says that errors are reported, and that there is no hint then.
func TestTableErrors(t *testing.T) {
	l := newLearner(t, sticky.Learn{Table: remote{}})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sid, err := l.Hint(ctx, values("$cookie_s", "s1"))
	require.ErrorIs(t, err, errRemote)
	require.Empty(t, sid)
	require.ErrorIs(t, l.OK(ctx, "a", values("$upstream_cookie_s", "s1")), errRemote)
	require.ErrorIs(t, l.OK(ctx, "a", values("$cookie_s", "s1")), context.Canceled, "the table has the request's context")
	require.NoError(t, l.OK(ctx, "a", values()), "no session: the table is not asked")
}

// strange is a Table that knows what no peer can be called.
type strange struct{ remote }

func (strange) Lookup(context.Context, sticky.ID) (string, error) {
	return strings.Repeat("a", 1<<20), nil
}

func TestTableIsNotTrusted(t *testing.T) {
	require.Empty(t, newLearner(t, sticky.Learn{Table: strange{}}).hint("s1"))
}

// counted is a remote table that counts how often it is asked to renew.
type counted struct {
	remote
	renewed []string
}

func (c *counted) Renew(_ context.Context, _ sticky.ID, sid string, _ time.Duration) error {
	c.renewed = append(c.renewed, sid)
	return nil
}

// A remote table is asked to renew a session once in a tenth of its life, and at once
// where its peer changes; an error is tried again.
func TestARemoteTableRenewsSeldom(t *testing.T) {
	now, table := 1000*time.Second, &counted{}
	l, err := sticky.New(sticky.Learn{Create: []string{"$upstream_cookie_s"}, Lookup: []string{"$cookie_s"},
		Table: table, Timeout: 100 * time.Second}, &sticky.Options{Clock: func() time.Duration { return now }})
	require.NoError(t, err)
	request := func(id, sid string) { require.NoError(t, l.OK(context.Background(), sid, values("$cookie_s", id))) }
	for range 100 { // ten seconds
		request("s1", "a")
		now += 100 * time.Millisecond
	}
	require.Equal(t, []string{"a"}, table.renewed)
	request("s1", "a")
	request("s1", "b")
	request("s1", "b")
	request("s2", "b")
	require.Equal(t, []string{"a", "a", "b", "b"}, table.renewed)

	// Another process has moved s2 to a, or the session was created again.
	_, err = l.Hint(context.Background(), values("$cookie_s", "s2"))
	require.ErrorIs(t, err, errRemote) // it says a
	request("s2", "b")
	require.ErrorIs(t, l.OK(context.Background(), "b", values("$upstream_cookie_s", "s2")), errRemote)
	request("s2", "b")
	require.Equal(t, []string{"a", "a", "b", "b", "b", "b"}, table.renewed)
}
