// Package peer chooses peers as nginx's upstream modules do, bit for bit: the
// same peer, and the same state in every peer, after every operation. It is
// pure: no I/O, no goroutines, and no allocation in a get or free.
// Most programs import package balancer, which stands on it.
//
// # A request
//
// An Upstream is made of Servers and a Method; nil is round robin:
//
//	u, err := peer.New([]peer.Server{{Addr: "a", Weight: 5}, {Addr: "b"}}, leastconn.New(), nil)
//
// Each request gets peers and frees them by turns, until one has answered, no
// tries are left, or no peer can be had:
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
// Connected, FirstByte and Header tell what has come from the peer in between:
// least_time measures by them. Update exchanges the servers at any time.
//
// # Looking in
//
// State, Snapshot and Explain show the account behind the choice; OnEvent and
// Record of Options tell it as it goes. Policy changes what a failure costs, and how
// a peer comes back.
//
// # A method of one's own
//
// A Method builds a Selector, which picks from the Group that it is given. The
// arithmetic is here, once, behind two doors: RoundRobin (or PickAll), for whole groups,
// and Trunk, for the peers that a method adds to it. Eligible says who may be had, and
// Candidates lists them.
// A Selector may also implement Events, Binder, Comparer and Explainer.
package peer
