package parity

import (
	"errors"
	"fmt"
)

// Table is one method's answers to many keys: the rows run in order on one
// upstream, each request ended OK before the next.
type Table struct {
	Name      string   `json:"name"`
	Directive string   `json:"directive"`
	Servers   []Server `json:"servers"`
	Rows      []Row    `json:"rows"`
}

// Row is one key (of ip_hash: one address) and the peer that it went to.
type Row struct {
	Key  ByteString
	Peer Peer
}

// UnmarshalJSON reads [key, group, index].
func (r *Row) UnmarshalJSON(data []byte) error {
	return unmarshalTuple(data, &r.Key, &r.Peer.Group, &r.Peer.Index)
}

// LoadTables reads a tables.json.gz.
func LoadTables(path string) ([]Table, error) { return loadOne[[]Table](path) }

// ReplayTable runs the rows of a table, in order, against the subject that the
// factory makes of it. The methods of the tables do not draw.
func ReplayTable(t *Table, factory Factory) error {
	s := &Scenario{Name: t.Name, Proto: "http", Directives: []string{t.Directive}, Servers: t.Servers}
	draws := 0
	subject, err := factory(s, func() uint32 { draws++; return 0 })
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	subject.Time(1000, 1_000_000)
	for i, row := range t.Rows {
		op := &Op{Op: OpRequest, ID: i + 1, Key: row.Key}
		if t.Directive == "ip_hash" {
			op.Key, op.IP = "", string(row.Key)
		}
		err := runRow(subject, op, row.Peer)
		if err := errors.Join(err, equal("number of draws", 0, draws)); err != nil {
			return fmt.Errorf("%s: row %d: key %q: %w", t.Name, i, row.Key, err)
		}
	}
	return nil
}

func runRow(subject Subject, op *Op, want Peer) error {
	if _, err := subject.Request(op.ID, op); err != nil {
		return err
	}
	got, err := subject.Get(op.ID)
	if err != nil {
		return err
	}
	if err := equal("peer", spell(&want), spell(got.Peer)); err != nil {
		return err
	}
	freed, _, err := subject.Fin(op.ID, "OK", 0)
	return errors.Join(err, equal("freed", true, freed))
}
