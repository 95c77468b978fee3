// SPDX-License-Identifier: Dual BSD/GPL
// Copyright 2026 The StreamGauge authors
//
// TCP Vegas as a congestion control of the Linux kernel, for kernels that come without one. Kernel code: this file
// alone of the project stands under "Dual BSD/GPL", which the kernel asks of a program that calls its functions.
//
// Written from L. Brakmo, S. O'Malley, L. Peterson, "TCP Vegas: New Techniques for Congestion Detection and
// Avoidance", SIGCOMM 1994, section 4, and "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE
// JSAC 13(8), 1995, sections IV and V. Once a round trip it compares the rate that the window would give on an empty
// path, window / base RTT, with the rate it does give, window / RTT; their difference times the base RTT is the number
// of its own segments that wait in queues. It keeps between ALPHA and BETA of them there, and leaves slow start once
// there are more than GAMMA.
//
// Where Linux's tcp_vegas departs from the paper, so does this, for it stands in for it: the window doubles every
// round trip in slow start, not every other; retransmission stays the kernel's; a round trip with too few
// measurements, and everything but the open state, is Reno's.
//
// Types are what is needed of the kernel's, found by name in its BTF when the program is loaded (CO-RE).

typedef unsigned char __u8;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef _Bool bool;

#define KERNEL __attribute__((preserve_access_index))
#define SECTION(name) __attribute__((section(name), used))
#define KFUNC extern __attribute__((section(".ksyms")))

struct sock {
	int sk_rcvbuf; // any member: a declaration alone would be no type
} KERNEL;
struct inet_connection_sock {
	__u64 icsk_ca_priv[13];
} KERNEL;
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_nxt;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
} KERNEL;
struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
} KERNEL;
// The kernel's table of a congestion control: libbpf matches members by name.
struct tcp_congestion_ops {
	char name[16]; // first, where the loader writes the name to register under
	__u32 flags;
	void (*init)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, __u32 event);
};

KFUNC __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked);
KFUNC void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked);
KFUNC __u32 tcp_reno_ssthresh(struct sock *sk);
KFUNC __u32 tcp_reno_undo_cwnd(struct sock *sk);

enum {
	NON_RESTRICTED = 1, // TCP_CONG_NON_RESTRICTED: whoever may open a socket may choose it
	STATE_OPEN = 0,	    // TCP_CA_Open
	EVENT_TX_START = 0, // CA_EVENT_TX_START: first segment when nothing was in flight
	EVENT_RESTART = 1,  // CA_EVENT_CWND_RESTART: window restarts after idle
};

// Segments of a connection's own in queues: Linux's values (the paper's are 1, 3 and 1, or 2, 4 and 1).
#ifndef ALPHA
#define ALPHA 2
#define BETA 4
#define GAMMA 1
#endif
#define NEVER 0x7fffffffu
#define LEAST_WINDOW 2
// Fewer measurements than this in a round trip may all be of delayed acknowledgements.
#define LEAST_SAMPLES 3

// A connection's state, in its icsk_ca_priv (104 bytes). Times in us.
struct vegas {
	__u32 base_rtt;	 // least of the connection
	__u32 round_rtt; // least of this round trip
	__u32 samples;	 // RTT measurements in it
	__u32 round_end; // it ends when this sequence number is acknowledged
	__u32 judging;	 // 0: Reno
};

static __attribute__((always_inline)) struct vegas *state(void *sk)
{
	return (struct vegas *)((struct tcp_sock *)sk)->inet_conn.icsk_ca_priv;
}

static __attribute__((always_inline)) void begin_round(struct vegas *vegas, struct tcp_sock *tp)
{
	vegas->round_end = tp->snd_nxt;
	vegas->round_rtt = NEVER;
	vegas->samples = 0;
}

static __attribute__((always_inline)) void start_afresh(struct vegas *vegas, struct tcp_sock *tp)
{
	vegas->base_rtt = NEVER;
	vegas->judging = 1;
	begin_round(vegas, tp);
}

SECTION("struct_ops/sg_init") int sg_init(__u64 *arguments)
{
	void *sk = (void *)arguments[0];

	start_afresh(state(sk), sk);
	return 0;
}

// An acknowledgement with the RTT of the last segment that it covers.
SECTION("struct_ops/sg_pkts_acked") int sg_pkts_acked(__u64 *arguments)
{
	struct vegas *vegas = state((void *)arguments[0]);
	struct ack_sample *sample = (void *)arguments[1];
	__s32 measured = sample->rtt_us;
	__u32 rtt;

	if (measured < 0)
		return 0; // of a retransmission
	rtt = (__u32)measured + 1; // never 0: it is divided by
	if (rtt < vegas->base_rtt)
		vegas->base_rtt = rtt;
	if (rtt < vegas->round_rtt)
		vegas->round_rtt = rtt;
	vegas->samples++;
	return 0;
}

// Its measurements count while nothing is lost or reordered.
SECTION("struct_ops/sg_set_state") int sg_set_state(__u64 *arguments)
{
	void *sk = (void *)arguments[0];
	struct vegas *vegas = state(sk);

	vegas->judging = (__u8)arguments[1] == STATE_OPEN;
	if (vegas->judging)
		begin_round(vegas, sk);
	return 0;
}

// After a silence nothing that was measured counts, the base RTT neither: so Linux's. A connection that begins with a
// few short segments would else take their RTT, without a long one's transmission time, for its base.
SECTION("struct_ops/sg_cwnd_event") int sg_cwnd_event(__u64 *arguments)
{
	void *sk = (void *)arguments[0];
	__u32 event = (__u32)arguments[1];

	if (event == EVENT_RESTART || event == EVENT_TX_START)
		start_afresh(state(sk), sk);
	return 0;
}

// The threshold at which slow start ends is below the window.
static __attribute__((always_inline)) __u32 below(__u32 threshold, __u32 window)
{
	__u32 most = window > LEAST_WINDOW ? window - 1 : LEAST_WINDOW;

	if (threshold > most)
		threshold = most;
	return threshold > LEAST_WINDOW ? threshold : LEAST_WINDOW;
}

// The end of a round trip: section 4 of the paper, with windows in segments.
static __attribute__((always_inline)) void judge(struct vegas *vegas, struct tcp_sock *tp, __u32 acked)
{
	__u32 window = tp->snd_cwnd, threshold = tp->snd_ssthresh, clamp = tp->snd_cwnd_clamp, three_quarters;
	__u32 base = vegas->base_rtt, rtt = vegas->round_rtt;
	bool slow_start = window < threshold;
	__u32 queued;

	if (base == 0 || rtt == 0)
		return; // for the verifier: they are 1 or more
	// window - window * base / rtt is the paper's Diff in segments; Linux divides by the base RTT.
	queued = (__u32)((__u64)window * (rtt - base) / base);
	if (slow_start && queued > GAMMA) {
		__u32 fits = (__u32)((__u64)window * base / rtt) + 1;

		if (window > fits)
			window = fits;
		threshold = below(threshold, window);
	} else if (slow_start) {
		tcp_slow_start(tp, acked);
		window = tp->snd_cwnd;
	} else if (queued > BETA) {
		window--;
		threshold = below(threshold, window);
	} else if (queued < ALPHA) {
		window++;
	}
	if (window < LEAST_WINDOW)
		window = LEAST_WINDOW;
	if (window > clamp)
		window = clamp;
	// As after an idle time (RFC 2861 section 3): what the path has carried is not slow start's any more.
	three_quarters = (window >> 1) + (window >> 2);
	tp->snd_cwnd = window;
	tp->snd_ssthresh = threshold > three_quarters ? threshold : three_quarters;
}

SECTION("struct_ops/sg_cong_avoid") int sg_cong_avoid(__u64 *arguments)
{
	struct sock *sk = (void *)arguments[0];
	struct tcp_sock *tp = (void *)arguments[0];
	__u32 ack = (__u32)arguments[1], acked = (__u32)arguments[2];
	struct vegas *vegas = state(sk);

	if (!vegas->judging) {
		tcp_reno_cong_avoid(sk, ack, acked);
	} else if ((__s32)(vegas->round_end - ack) >= 0) {
		if (tp->snd_cwnd < tp->snd_ssthresh)
			tcp_slow_start(tp, acked);
	} else {
		if (vegas->samples < LEAST_SAMPLES)
			tcp_reno_cong_avoid(sk, ack, acked);
		else
			judge(vegas, tp, acked);
		begin_round(vegas, tp);
	}
	return 0;
}

SECTION("struct_ops/sg_ssthresh") __u32 sg_ssthresh(__u64 *arguments)
{
	return tcp_reno_ssthresh((void *)arguments[0]);
}

SECTION("struct_ops/sg_undo_cwnd") __u32 sg_undo_cwnd(__u64 *arguments)
{
	return tcp_reno_undo_cwnd((void *)arguments[0]);
}

// A link (kernel 6.4 and later) is registered while somebody holds its descriptor.
SECTION(".struct_ops.link") struct tcp_congestion_ops vegas = {
	.name = "sg_vegas",
	.flags = NON_RESTRICTED,
	.init = (void *)sg_init,
	.ssthresh = (void *)sg_ssthresh,
	.cong_avoid = (void *)sg_cong_avoid,
	.undo_cwnd = (void *)sg_undo_cwnd,
	.pkts_acked = (void *)sg_pkts_acked,
	.set_state = (void *)sg_set_state,
	.cwnd_event = (void *)sg_cwnd_event,
};

char LICENSE[] SECTION("license") = "Dual BSD/GPL";
