package wallclock

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A step of the wall clock changes nothing, since the default clock looks at
// the wall once, when the upstream is made, and then goes by monotonic time. No
// test can step the wall clock of its machine; so this one reads the source:
// time.Now is called once, not in a closure (which would
// call it again), and what is called in the closure is time.Since of that reading,
// as it was, monotonic part and all.
func TestWallClockStepsChangeNothing(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "wallclock.go", nil, 0)
	require.NoError(t, err)
	var atMake, inClosures, since int
	var closures []ast.Node
	now := map[string]bool{} // the variables that are time.Now() and nothing else
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			closures = append(closures, n)
		case *ast.AssignStmt:
			if call, ok := n.Rhs[0].(*ast.CallExpr); ok && isTime(call.Fun, "Now") {
				now[n.Lhs[0].(*ast.Ident).Name] = true
			}
		case *ast.CallExpr:
			within := false
			for _, c := range closures {
				within = within || c.Pos() <= n.Pos() && n.End() <= c.End()
			}
			switch {
			case isTime(n.Fun, "Now") && within:
				inClosures++
			case isTime(n.Fun, "Now"):
				atMake++
			case isTime(n.Fun, "Since") && within && now[n.Args[0].(*ast.Ident).Name]:
				since++
			}
		}
		return true
	})
	require.Zero(t, inClosures, "time.Now in a closure")
	require.Equal(t, 1, atMake, "calls of time.Now")
	require.Equal(t, 1, since, "time.Since of it in a closure")
}

// isTime tells whether an expression is time.NAME.
func isTime(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "time"
}

// The clock begins at the wall time, and never goes back.
func TestNew(t *testing.T) {
	before := time.Duration(time.Now().UnixNano())
	clock := New()
	first, second := clock(), clock()
	require.GreaterOrEqual(t, first, before)
	require.GreaterOrEqual(t, second, first)
}
