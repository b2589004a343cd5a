package recording

import (
	"strconv"
	"time"

	"github.com/trunklb/trunk/internal/oplog"
	"github.com/trunklb/trunk/peer"
)

// The operations, by their recorded names.
const (
	opTime     = "time"
	opRequest  = "req"
	opGet      = "get"
	opNotify   = "notify"
	opHeader   = "header"
	opNext     = "next"
	opFin      = "fin"
	opUpdate   = "update"
	opSessions = "sessions" // nginx's recordings alone
)

// What an upstream hands to its recorder.
type (
	origin = oplog.Origin[peer.Method, peer.Policy, *peer.Set, peer.State]
	done   = oplog.Operation[*peer.Set, peer.State]
	change = oplog.Change[peer.State]
)

// noClient is the "ip" of a client that has no address.
const noClient = "unix:"

// wallTime is a time of the clock as time.Time.
func wallTime(t time.Duration) time.Time { return time.Unix(0, int64(t)).UTC() }

func appendTime(b []byte, t time.Duration) []byte {
	b = append(b, `{"op":"time","at":"`...)
	b = wallTime(t).AppendFormat(b, time.RFC3339Nano)
	return append(b, `"}`...)
}

// appendOperation writes what was asked of a request, and then what came of it.
func appendOperation(b []byte, op *done, r *redaction) []byte {
	b = append(append(b, `{"op":"`...), opName(op)...)
	b = append(b, '"')
	b = appendInt(b, "id", int64(op.Request))
	b = appendGiven(b, op, r)
	switch op.Kind {
	case oplog.Begin:
		b = appendSome(b, "over", int64(op.Over))
		b = appendSome(b, "tries_cap", int64(op.MaxTries))
		b = appendInt(b, "tries", int64(op.Tries))
	case oplog.Get:
		b = appendPeer(appendDraws(b, op.Draws), op)
		b = appendInt(b, "tries", int64(op.Tries))
	case oplog.Connected:
		b = appendInt(append(b, `,"what":"connect"`...), "ms", op.Since)
	case oplog.FirstByte:
		b = appendInt(append(b, `,"what":"first_byte"`...), "ms", op.Since)
	case oplog.Header:
		b = appendInt(b, "header_time", op.Since)
	case oplog.Free:
		b = append(append(b, `,"state":"`...), peer.Outcome(op.Outcome).String()...)
		b = append(b, `","freed":true`...)
		if opName(op) == opFin {
			b = appendInt(b, "response_time", op.Since)
		}
		b = appendInt(b, "tries", int64(op.Tries))
	}
	if op.Kind != oplog.Get {
		b = appendDraws(b, op.Draws)
	}
	return append(appendChanges(b, op.Changed), '}')
}

func opName(op *done) string {
	switch op.Kind {
	case oplog.Begin:
		return opRequest
	case oplog.Get:
		return opGet
	case oplog.Connected, oplog.FirstByte:
		return opNotify
	case oplog.Header:
		return opHeader
	}
	if o := peer.Outcome(op.Outcome); o == peer.Failed || o == peer.Next {
		return opNext
	}
	return opFin // as far as an upstream knows
}

// appendGiven writes what the request brings that it did not bring before.
func appendGiven(b []byte, op *done, r *redaction) []byte {
	is, was := &op.Given, &op.Was
	if is.Key != was.Key {
		b = appendText(append(b, `,"key":`...), r.text(peer.TextKey, is.Key))
	}
	if is.Client != was.Client {
		ip := noClient
		if is.Client.IsValid() {
			ip = r.text(peer.TextClient, is.Client.String())
		}
		b = appendText(append(b, `,"ip":`...), ip)
	}
	if is.Hint != was.Hint {
		b = appendText(append(b, `,"hint":`...), r.text(peer.TextHint, is.Hint))
	}
	if is.Stream != was.Stream {
		b = strconv.AppendBool(append(b, `,"stream":`...), is.Stream)
	}
	if is.BackupTry != was.BackupTry {
		b = strconv.AppendBool(append(b, `,"backup_try":`...), is.BackupTry)
	}
	return appendSome(b, "gave_back", int64(op.GaveBack))
}

func appendPeer(b []byte, op *done) []byte {
	if op.Index < 0 {
		return append(b, `,"peer":null`...)
	}
	b = strconv.AppendInt(append(b, `,"peer":[`...), int64(op.Group), 10)
	b = strconv.AppendInt(append(b, ','), int64(op.Index), 10)
	return append(b, ']')
}

func appendDraws(b []byte, draws []uint32) []byte {
	if len(draws) == 0 {
		return b
	}
	b = append(b, `,"draws":[`...)
	for _, n := range draws {
		b = append(strconv.AppendUint(b, uint64(n), 10), ',')
	}
	b[len(b)-1] = ']'
	return b
}

func appendChanges(b []byte, list []change) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(b, `,"changed":{`...)
	for i := range list {
		c := &list[i]
		b = strconv.AppendInt(append(b, '"'), int64(c.Group), 10)
		b = strconv.AppendInt(append(b, '/'), int64(c.Index), 10)
		b = append(b, `":{`...)
		for k := range stateFields {
			f := &stateFields[k]
			n := f.get(&c.Is)
			if n == f.get(&c.Was) {
				continue
			}
			b = append(append(append(b, '"'), f.name...), `":`...)
			if f.unsigned {
				b = strconv.AppendUint(b, uint64(n), 10)
			} else {
				b = strconv.AppendInt(b, n, 10)
			}
			b = append(b, ',')
		}
		b[len(b)-1] = '}'
		b = append(b, ',')
	}
	b[len(b)-1] = '}'
	return b
}

func appendInt(b []byte, name string, n int64) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendInt(b, n, 10)
}

// appendSome is appendInt for a number whose absence means 0.
func appendSome(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	return appendInt(b, name, n)
}
