package parity

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/engine"
)

const testdata = "testdata/traces"

// TestMain lets the heap grow further between collections: the tests allocate much
// and keep little, and at Go's default the collector takes a third of their CPU time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// subjects are what each recording is replayed against: the literal model, and the
// product with the engine that it chooses itself, with the queues and with the scan.
// Most recorded groups are small enough to be scanned; both engines must do for all.
var subjects = []struct {
	name     string
	factory  Factory
	scanMost int
}{
	{"the model", Literal, engine.ScanMost},
	{"the product", Product, engine.ScanMost},
	{"the product with queues", Product, 0},
	{"the product with the scan", Product, 1 << 30},
}

// TestTraces replays the recordings of a directory, given as
//
//	TRUNK_TRACES=DIR go test ./internal/parity -run TestTraces -v
//
// or else those of testdata, against all subjects. DIR is relative to the root of
// the module. With -short it replays the first scenarios of each file of testdata.
func TestTraces(t *testing.T) {
	scanMost := engine.ScanMost
	t.Cleanup(func() { engine.ScanMost = scanMost })

	dir, given := os.LookupEnv("TRUNK_TRACES")
	switch {
	case !given:
		dir = testdata
	case dir == "":
		t.Fatal("TRUNK_TRACES is empty")
	case !filepath.IsAbs(dir):
		dir = filepath.Join("..", "..", dir)
	}
	total := replayFiles(t, dir, testing.Short() && !given)
	t.Logf("%d files, %d scenarios, %d operations", total.files, total.scenarios, total.ops)
	switch {
	case given:
	case testing.Short():
		require.Equal(t, 34*shortScenarios+1, total.scenarios) // cookie_comma has one
	default:
		require.Equal(t, counts{files: 35, scenarios: 926, ops: 166_573}, total)
	}
}

// TestTables compares the model and the product with the recorded tables.
func TestTables(t *testing.T) {
	t.Run("model", func(t *testing.T) { replayTables(t, Literal) })
	t.Run("product", func(t *testing.T) { replayTables(t, Product) })
}

// TestRings compares the model's ring and the product's with the recorded ones.
func TestRings(t *testing.T) {
	t.Run("model", func(t *testing.T) { checkRings(t, LiteralRing) })
	t.Run("product", func(t *testing.T) { checkRings(t, ProductRing) })
}

// counts is how much was replayed without a difference.
type counts struct{ files, scenarios, ops int }

// shortScenarios is how many scenarios of a file a short test replays.
const shortScenarios = 3

// replayFiles replays every *.jsonl.gz of a directory. A directory or a file that
// has nothing to replay fails.
func replayFiles(t *testing.T, dir string, short bool) (total counts) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "no recordings (*.jsonl.gz) in %s", dir)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			n := replayFile(t, path, short)
			total.files++
			total.scenarios += n.scenarios
			total.ops += n.ops
		})
	}
	return total
}

// replayFile replays one file to its end, even after a difference.
func replayFile(t *testing.T, path string, short bool) (n counts) {
	for s, err := range Scenarios(path) {
		require.NoError(t, err)
		equal := true
		for _, subject := range subjects {
			engine.ScanMost = subject.scanMost
			if err := Replay(s, subject.factory); err != nil {
				t.Errorf("%s: %s: %v", path, subject.name, err)
				equal = false
			}
		}
		if equal {
			n.scenarios++
			n.ops += len(s.Ops)
		}
		if short && n.scenarios == shortScenarios {
			break
		}
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
