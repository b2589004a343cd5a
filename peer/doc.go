// Package peer chooses peers as nginx's upstream modules do, bit for bit: the
// same peer, and the same state in every peer, after every operation. It is
// pure: no I/O, no goroutines, and no allocation in a get or free.
// Most programs import package balancer, which is built on it.
//
// # A request
//
// An Upstream is made of Servers and a Method; nil is round robin:
//
//	u, err := peer.New([]peer.Server{{Addr: "a", Weight: 5}, {Addr: "b"}}, leastconn.New(), nil)
//
// Each request gets peers and frees them by turns, until one has answered, no
// tries are left, or no peer is available:
//
//	var r peer.Request
//	u.Begin(&r)
//	for u.Get(&r) == nil {
//		p, _ := u.Peer(&r)
//		if send(p.Server.Addr) == nil {
//			u.Free(&r, peer.OK)
//			break
//		}
//		u.Free(&r, peer.Failed)
//		if r.Tries() == 0 {
//			break
//		}
//	}
//
// Connected, FirstByte and Header report what has come from the peer in between:
// least_time measures by them. Update exchanges the servers at any time.
//
// # Looking in
//
// State, Snapshot and Explain show the account behind the choice; OnEvent and
// Record of Options report it as it goes. Policy changes what a failure costs, and how
// a peer comes back.
//
// # A method of one's own
//
// A Method builds a Selector, whose Pick chooses from the Group that it is given, and
// describes itself: its name in a Decision, what it needs of a request, what it does not
// fit. The arithmetic is here, once, behind two entry points: RoundRobin (or PickAll) for
// whole groups, and Trunk for the peers that a method adds to it. Eligible reports which
// peers are available to a request, and Candidates lists them. A Selector's other
// functions bind requests to peers, explain, and learn what becomes of the peers
// that were taken. A Method around another one changes what these two return, and keeps
// the rest. examples/ownmethod is a method on one page.
package peer
