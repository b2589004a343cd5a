package redis

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

// server is a redis-server on a unix socket, which needs no free port.
type server struct {
	path string
	cmd  *exec.Cmd
}

func start(t *testing.T, binary, name string) *server {
	dir := t.TempDir()
	s := &server{path: filepath.Join(dir, name+".sock")}
	s.cmd = exec.Command(binary, "--port", "0", "--unixsocket", s.path, "--save", "", "--dir", dir)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(s.kill)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, 10*time.Second, 10*time.Millisecond)
	return s
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// A real client's connections are spread by weight, and when a server dies the
// client goes on with the other, without knowing of either.
func TestClientOverTwoServers(t *testing.T) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("redis-server is not installed")
	}
	a, b := start(t, binary, "a"), start(t, binary, "b")
	up, err := balancer.New(context.Background(), balancer.Config{Name: "redis", Servers: []balancer.Server{
		{Addr: "unix:" + a.path, Weight: 2}, {Addr: "unix:" + b.path}}})
	require.NoError(t, err)
	defer up.Close()

	client := redis.NewClient(&redis.Options{
		Addr: "redis:6379", PoolSize: 6, MinIdleConns: 0, DisableIdentity: true,
		Dialer: up.DialContext,
	})
	defer client.Close()
	ctx := context.Background()

	// Six connections at one time: four to a, two to b.
	conns := make([]*redis.Conn, 6)
	for i := range conns {
		conns[i] = client.Conn()
		require.NoError(t, conns[i].Set(ctx, "k", i, 0).Err())
	}
	s := up.Snapshot()
	require.Equal(t, []int64{4, 2}, []int64{s.Peers[0].Conns, s.Peers[1].Conns})
	for _, c := range conns {
		require.NoError(t, c.Close())
	}

	a.kill()
	for range 50 {
		require.NoError(t, client.Set(ctx, "k", "v", 0).Err())
		got, err := client.Get(ctx, "k").Result()
		require.NoError(t, err)
		require.Equal(t, "v", got)
	}
	require.NoError(t, client.Close())
	s = up.Snapshot()
	require.Equal(t, []int64{0, 0}, []int64{s.Peers[0].Conns, s.Peers[1].Conns})
}
