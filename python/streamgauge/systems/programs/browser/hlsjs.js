// hls.js (https://github.com/video-dev/hls.js), as `settings` has it; all else as its authors set it.
"use strict";

function makePlayer(video, settings, tell) {
  const config = {
    debug: false,
    // It would fetch up to 60 MB ahead, most clips whole: without this it stops at its buffer's length, 30 s.
    maxBufferSize: 0,
  };
  if (settings.buffer_s !== null) {
    config.maxBufferLength = settings.buffer_s;
    config.maxMaxBufferLength = settings.buffer_s;
  }
  if (settings.initial_bps !== null) config.abrEwmaDefaultEstimate = settings.initial_bps;
  if (settings.begin_s > 0) config.startPosition = settings.begin_s;
  if (settings.safety_factor !== null) config.abrBandWidthFactor = settings.safety_factor;
  if (settings.cmcd !== "off") {
    config.cmcd = { sessionId: settings.session, contentId: "clip", useHeaders: settings.cmcd === "header" };
  }
  const hls = new Hls(config);
  const number = (level) => Number(/media_(\d+)\.m3u8/.exec(hls.levels[level].uri)[1]);
  const named = (frag) => `${frag.type === "main" ? "video" : frag.type} ${frag.relurl}`;

  hls.on(Hls.Events.LEVEL_SWITCHING, (_, data) => {
    const estimate = hls.bandwidthEstimate;
    tell.level(number(data.level), `hls.js says no reason; its estimate is ${Math.round(estimate)} bit/s`);
  });
  hls.on(Hls.Events.LEVEL_SWITCHED, (_, data) => tell.level(number(data.level), "shown", "level_shown"));
  hls.on(Hls.Events.FRAG_LOADED, (_, data) => {
    const stats = data.frag.stats;
    if (data.frag.sn === "initSegment") return;
    const took = (stats.loading.end - stats.loading.start) / 1000;
    const first = (stats.loading.first - stats.loading.start) / 1000;
    tell.say("segment_fetched", stats.loaded, "B", `${named(data.frag)}: ${took.toFixed(3)} s, first byte ${first.toFixed(3)} s`);
    tell.say("segment_fetch_time", took, "s", named(data.frag));
    if (data.frag.type === "main") tell.say("estimate", hls.bandwidthEstimate, "bit/s", "hls.js: bandwidthEstimate");
  });
  hls.on(Hls.Events.FRAG_LOAD_EMERGENCY_ABORTED, (_, data) => {
    tell.say("segment_abandoned", data.stats.loaded, "B", named(data.frag));
  });
  hls.on(Hls.Events.ERROR, (_, data) => {
    tell.say("player_warning", null, "", `hls.js: ${data.details}`);
    if (!data.fatal) return;
    const why = `hls.js: ${data.details}`;
    if (data.type === Hls.ErrorTypes.NETWORK_ERROR) tell.givenUp(why);
    else tell.fail(why);
  });
  hls.attachMedia(video);

  return {
    load(url) {
      hls.loadSource(url.hls);
      hls.once(Hls.Events.MANIFEST_PARSED, () => video.play());
    },
  };
}
