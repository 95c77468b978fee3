// One end of a call in a page. The script that steers the browser calls the functions below, and takes the lines that
// `report` (a binding of DevTools) is given: [page time in ms, name, value, unit, reason].
"use strict";

const SAMPLE_MS = 200;
const RTP_HZ = 90000; // of pictures (RFC 3551, section 5)

let settings = null;
let pc = null;
let sender = null;
let track = null;
let before = null;
let timer = null;

function say(name, value = null, unit = "", reason = "", at = performance.now()) {
  report(JSON.stringify([at, name, value, unit, reason]));
}

// --- signalling: the script carries these answers to the other end, outside the link ---

async function gathered() {
  if (pc.iceGatheringState !== "complete") {
    await new Promise((done) => {
      pc.onicegatheringstatechange = () => pc.iceGatheringState === "complete" && done();
    });
  }
  return pc.localDescription.sdp;
}

function newConnection() {
  pc = new RTCPeerConnection({ iceServers: [], bundlePolicy: "max-bundle" });
  let begun = performance.now();
  pc.onconnectionstatechange = () => {
    const now = performance.now();
    if (pc.connectionState === "connecting") begun = now;
    if (pc.connectionState === "connected") say("connected", (now - begun) / 1e3, "s", "ICE and DTLS", now);
    if (pc.connectionState === "disconnected") say("disconnected", null, "", "the other end answers no check of the path");
    if (pc.connectionState === "failed") say("call_failed", null, "", `ICE is ${pc.iceConnectionState}`);
  };
}

// Takes the time, the size and the kind of each encoded picture, and passes it on as it is.
const PASSING = `onrtctransform = ({ transformer: { readable, writable } }) => {
  const noted = (frame, out) => {
    out.enqueue(frame);
    const { rtpTimestamp } = frame.getMetadata();
    postMessage([performance.timeOrigin + performance.now(), frame.type, rtpTimestamp, frame.data.byteLength]);
  };
  readable.pipeThrough(new TransformStream({ transform: noted })).pipeTo(writable);
};`;

function noteEncoded() {
  const worker = new Worker(URL.createObjectURL(new Blob([PASSING])));
  worker.onmessage = ({ data: [at, type, rtp, bytes] }) => {
    const name = type === "key" ? "key_frame" : "frame_encoded";
    say(name, bytes, "B", `rtp ${rtp}`, at - performance.timeOrigin);
  };
  sender.transform = new RTCRtpScriptTransform(worker);
}

async function offer(told) {
  settings = told;
  const { width, height, frame_rate: frameRate } = told;
  const stream = await navigator.mediaDevices.getUserMedia({ video: { width, height, frameRate } });
  [track] = stream.getVideoTracks();
  newConnection();
  const sendEncodings = [{ maxBitrate: told.most_rate_bps }];
  const transceiver = pc.addTransceiver(track, { direction: "sendonly", streams: [stream], sendEncodings });
  sender = transceiver.sender;
  noteEncoded();
  const wanted = `video/${told.codec}`;
  const codecs = RTCRtpSender.getCapabilities("video").codecs;
  if (!codecs.some((one) => one.mimeType.toLowerCase() === wanted)) {
    throw new Error(`this browser has no encoder of ${told.codec}`);
  }
  const helpers = ["video/rtx", "video/red", "video/ulpfec"];
  transceiver.setCodecPreferences(codecs.filter((one) => [wanted, ...helpers].includes(one.mimeType.toLowerCase())));
  await pc.setLocalDescription(await pc.createOffer());
  return gathered();
}

async function answer(told, sdp) {
  settings = told;
  newConnection();
  pc.ontrack = ({ streams, receiver }) => watch(streams[0], receiver);
  await pc.setRemoteDescription({ type: "offer", sdp });
  await pc.setLocalDescription(await pc.createAnswer());
  return gathered();
}

async function answered(sdp) {
  await pc.setRemoteDescription({ type: "answer", sdp });
}

// The addresses of the other end come when the flow starts: no packet is on the link before.
async function begin(candidates) {
  for (const candidate of candidates) await pc.addIceCandidate({ candidate, sdpMLineIndex: 0, sdpMid: "0" });
  await pc.addIceCandidate();
  timer = setInterval(sample, SAMPLE_MS);
}

async function pause(isPaused) {
  if (sender === null) return;
  const parameters = sender.getParameters();
  parameters.encodings[0].active = !isPaused;
  await sender.setParameters(parameters);
}

async function finish() {
  clearInterval(timer);
  if (pc !== null) await sample();
}

// --- pictures ---

function watch(stream) {
  const video = document.getElementById("shown");
  video.srcObject = stream;
  let last = null;
  let height = null;
  const shown = (_, frame) => {
    video.requestVideoFrameCallback(shown);
    if (frame.rtpTimestamp === last) return;
    last = frame.rtpTimestamp;
    say("frame_shown", null, "1", `rtp ${last}`, frame.presentationTime);
    if (frame.height !== height) say("picture_height", (height = frame.height), "1");
  };
  video.requestVideoFrameCallback(shown);
}

// --- statistics (W3C webrtc-stats), each SAMPLE_MS ---

// Counters whose growth since the sample before is reported.
const GROWTH = {
  retransmittedPacketsSent: ["repeated", "packets"],
  nackCount: ["nack_requests", "1"],
  pliCount: ["key_frame_asked", "1"],
};
// Counters that are reported when they have changed. Both ends have some of them: each reports its own.
const TOTALS = {
  packetsSent: ["packets_sent", "packets"],
  packetsSentWithEct1: ["packets_sent_with_ect1", "packets"],
  packetsReceived: ["packets_received", "packets"],
  packetsReceivedWithCe: ["packets_received_with_ce", "packets"],
  packetsLost: ["packets_lost", "packets"],
  framesDropped: ["dropped_frames", "1"],
  framesDecoded: ["frames_decoded", "1"],
  framesEncoded: ["frames_encoded", "1"],
  freezeCount: ["freeze_count", "1"],
  totalFreezesDuration: ["freeze_time", "s"],
};

function grown(now, key) {
  return (now[key] ?? 0) - (before?.[now.id]?.[key] ?? 0);
}

function mean(now, sum, count) {
  const counted = grown(now, count);
  return counted > 0 ? grown(now, sum) / counted : null;
}

async function sample() {
  const stats = Object.fromEntries((await pc.getStats()).entries());
  const at = performance.now();
  const put = (name, value, unit, reason = "") => {
    if (value !== null && value !== undefined) say(name, value, unit, reason, at);
  };
  for (const one of Object.values(stats)) {
    if (one.type === "candidate-pair" && one.nominated && sender !== null) {
      put("estimate", one.availableOutgoingBitrate, "bit/s");
    } else if (one.type === "remote-inbound-rtp" && grown(one, "roundTripTimeMeasurements") > 0) {
      put("rtcp_rtt", one.roundTripTime, "s");
    } else if (one.type === "outbound-rtp") {
      put("encoder_rate", one.targetBitrate, "bit/s", `limited by ${one.qualityLimitationReason}`);
    } else if (one.type === "inbound-rtp") {
      put("buffer", mean(one, "jitterBufferDelay", "jitterBufferEmittedCount"), "s", "mean of the pictures since");
      put("jitter", one.jitter, "s");
    }
    const receives = one.type === "inbound-rtp";
    if (receives || one.type === "outbound-rtp") {
      for (const [key, [name, unit]] of Object.entries(GROWTH)) {
        // Both ends count requests, and the receiver makes them.
        if (grown(one, key) > 0 && receives !== (key === "retransmittedPacketsSent")) put(name, grown(one, key), unit);
      }
      for (const [key, [name, unit]] of Object.entries(TOTALS)) {
        if (before?.[one.id] === undefined || grown(one, key) !== 0) put(name, one[key], unit);
      }
    }
  }
  before = stats;
}
