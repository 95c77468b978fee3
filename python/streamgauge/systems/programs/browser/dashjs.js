// dash.js (https://dashjs.org), as `settings` has it; all else as its authors set it.
"use strict";

// Which rules are active beside those that are always: of insufficient buffer, of the history of switches, and the one
// that gives up segments. Both of throughput and BOLA is what dash.js calls DYNAMIC.
const RULES = {
  dynamic: ["throughputRule", "bolaRule"],
  throughput: ["throughputRule"],
  bola: ["bolaRule"],
  l2a: ["l2ARule"],
  lolp: ["loLPRule"],
};
// These choose alone.
const ALONE = ["l2a", "lolp"];
const BESIDE = ["insufficientBufferRule", "switchHistoryRule", "abandonRequestsRule"];
// Of dash.js's errors, those by which the network ends a session: manifest, segment, initialisation, or content gone.
const NETWORK = [15, 17, 25, 27, 28];

function makePlayer(video, settings, tell) {
  const events = dashjs.MediaPlayer.events;
  const player = dashjs.MediaPlayer().create();
  const chosen = settings.rule === "default" ? "dynamic" : settings.rule;
  const rules = {};
  for (const name of new Set(Object.values(RULES).flat())) rules[name] = { active: RULES[chosen].includes(name) };
  for (const name of BESIDE) rules[name] = { active: !ALONE.includes(chosen) };
  const abr = { rules };
  if (settings.initial_bps !== null) abr.initialBitrate = { video: settings.initial_bps / 1000 };
  if (settings.safety_factor !== null) abr.throughput = { bandwidthSafetyFactor: settings.safety_factor };
  const streaming = {
    abr,
    // What another session had is not known here.
    lastBitrateCachingInfo: { enabled: false },
    lastMediaSettingsCachingInfo: { enabled: false },
    cmcd: { enabled: settings.cmcd !== "off", mode: settings.cmcd === "header" ? "header" : "query", sid: settings.session },
  };
  streaming.buffer = {};
  if (settings.buffer_s !== null) {
    const buffer = settings.buffer_s;
    streaming.buffer = {
      bufferTimeDefault: buffer,
      bufferTimeAtTopQuality: buffer,
      bufferTimeAtTopQualityLongForm: buffer,
    };
  }
  if (["on", "off"].includes(settings.fast_switch)) streaming.buffer.fastSwitchEnabled = settings.fast_switch === "on";
  player.initialize(video, null, true);
  player.updateSettings({ debug: { logLevel: 0 }, streaming });

  player.on(events.QUALITY_CHANGE_REQUESTED, (event) => {
    if (event.mediaType !== "video") return;
    tell.level(Number(event.newRepresentation.id), event.reason === null ? "" : words(event.reason));
  });
  player.on(events.QUALITY_CHANGE_RENDERED, (event) => {
    if (event.mediaType === "video") tell.level(Number(event.newRepresentation.id), "shown", "level_shown");
  });
  player.on(events.FRAGMENT_LOADING_STARTED, (event) => {
    const request = event.request;
    // The first level is chosen without a change of quality.
    if (request.mediaType === "video" && request.type === "MediaSegment") {
      tell.level(Number(request.representation.id), "the segment that is asked for");
    }
  });
  player.on(events.FRAGMENT_LOADING_COMPLETED, (event) => {
    const request = event.request;
    if (event.error || request.type !== "MediaSegment") return;
    const took = (request.endDate - request.startDate) / 1000;
    const first = (request.firstByteDate - request.startDate) / 1000;
    const what = `${request.mediaType} ${request.representation.id}, segment ${request.index}`;
    tell.say("segment_fetched", request.bytesLoaded, "B", `${what}: ${took.toFixed(3)} s, first byte ${first.toFixed(3)} s`);
    tell.say("segment_fetch_time", took, "s", what);
  });
  player.on(events.FRAGMENT_LOADING_ABANDONED, (event) => {
    const request = event.request;
    const what = `${request.mediaType} ${request.representation.id}, segment ${request.index}`;
    tell.say("segment_abandoned", request.bytesLoaded || 0, "B", what);
  });
  player.on(events.THROUGHPUT_MEASUREMENT_STORED, () => {
    const estimate = player.getAverageThroughput("video");
    tell.say("estimate", estimate * 1000, "bit/s", "dash.js: average throughput of video");
  });
  player.on(events.ERROR, (event) => {
    const error = event.error || {};
    const why = `dash.js: error ${error.code}: ${error.message}`;
    if (NETWORK.includes(error.code)) tell.givenUp(why);
    else tell.fail(why);
  });

  return { load: (url) => player.attachSource(url.dash, settings.begin_s) };
}

// The reason that dash.js gives, a text or an object of numbers and texts, as one line.
function words(reason) {
  if (typeof reason !== "object") return String(reason);
  return Object.entries(reason)
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([key, value]) => `${key} ${typeof value === "number" ? Number(value.toPrecision(6)) : typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
}
