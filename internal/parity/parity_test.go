package parity

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/engine"
)

const testdata = "testdata/traces"

// TestModel holds the literal model against everything that was recorded.
func TestModel(t *testing.T) {
	total := replayFiles(t, testdata, Literal)
	require.Equal(t, counts{files: 32, scenarios: 889, ops: 164_402}, total)
	t.Run("tables", func(t *testing.T) { replayTables(t, Literal) })
	t.Run("rings", func(t *testing.T) { checkRings(t, LiteralRing) })
}

// TestTraces holds the product against the recordings of a directory, given as
//
//	TRUNK_TRACES=DIR go test ./internal/parity -run TestTraces -v
//
// or else against those of testdata. DIR is relative to the root of the module.
func TestTraces(t *testing.T) {
	if product == nil {
		t.Skip("no product yet")
	}
	dir, ok := os.LookupEnv("TRUNK_TRACES")
	switch {
	case !ok:
		dir = testdata
	case dir == "":
		t.Fatal("TRUNK_TRACES is empty")
	case !filepath.IsAbs(dir):
		dir = filepath.Join("..", "..", dir)
	}
	total := replayFiles(t, dir, product)
	t.Logf("%d files, %d scenarios, %d operations", total.files, total.scenarios, total.ops)

	// Most recorded groups are small enough to be walked; both engines must do
	// for all of them.
	scanMost := engine.ScanMost
	t.Cleanup(func() { engine.ScanMost = scanMost })
	for name, most := range map[string]int{"queues": 0, "walk": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			engine.ScanMost = most
			require.Equal(t, total, replayFiles(t, dir, product))
		})
	}
}

// TestTables holds the product against the recorded tables.
func TestTables(t *testing.T) {
	if product == nil {
		t.Skip("no product yet")
	}
	replayTables(t, product)
}

// TestRings holds the product's ring against the recorded ones.
func TestRings(t *testing.T) {
	if productRing == nil {
		t.Skip("no product yet")
	}
	checkRings(t, productRing)
}

// counts is how much was replayed without a difference.
type counts struct{ files, scenarios, ops int }

// replayFiles replays every *.jsonl.gz of a directory, the files in parallel. A
// directory or a file that has nothing to replay fails.
func replayFiles(t *testing.T, dir string, factory Factory) counts {
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "no recordings (*.jsonl.gz) in %s", dir)

	var files, scenarios, ops atomic.Int64
	t.Run("files", func(t *testing.T) { // returns when all of them have ended
		for _, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				n := replayFile(t, path, factory)
				files.Add(1)
				scenarios.Add(int64(n.scenarios))
				ops.Add(int64(n.ops))
			})
		}
	})
	return counts{int(files.Load()), int(scenarios.Load()), int(ops.Load())}
}

// replayFile replays one file to its end, whatever its scenarios come to.
func replayFile(t *testing.T, path string, factory Factory) counts {
	var n counts
	for s, err := range Scenarios(path) {
		require.NoError(t, err)
		if err := Replay(s, factory); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		n.scenarios++
		n.ops += len(s.Ops)
	}
	if n.scenarios == 0 {
		t.Errorf("%s: nothing was replayed", path)
	}
	t.Logf("%-40s %4d scenarios %7d operations", filepath.Base(path), n.scenarios, n.ops)
	return n
}

func replayTables(t *testing.T, factory Factory) {
	tables, err := LoadTables(filepath.Join(testdata, "tables.json.gz"))
	require.NoError(t, err)
	require.Len(t, tables, 15)
	for i := range tables {
		t.Run(tables[i].Name, func(t *testing.T) {
			require.Len(t, tables[i].Rows, 1000)
			require.NoError(t, ReplayTable(&tables[i], factory))
		})
	}
}

func checkRings(t *testing.T, ring RingFunc) {
	rings, err := LoadRings(filepath.Join(testdata, "rings.json.gz"))
	require.NoError(t, err)
	require.Len(t, rings, 10)
	for i := range rings {
		t.Run(rings[i].Name, func(t *testing.T) {
			require.NoError(t, CheckRing(&rings[i], ring))
		})
	}
}
