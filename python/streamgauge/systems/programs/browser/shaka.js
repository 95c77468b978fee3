// Shaka Player (https://github.com/shaka-project/shaka-player), as `settings` has it; all else as its authors set it.
"use strict";

function makePlayer(video, settings, tell) {
  shaka.polyfill.installAll();
  const player = new shaka.Player();
  const abr = {
    // Chromium's guess of the machine's link is not the path's.
    useNetworkInformation: false,
    preferNetworkInformationBandwidth: false,
  };
  if (settings.dropped_frames === "off") abr.droppedFrames = false;
  if (settings.initial_bps !== null) abr.defaultBandwidthEstimate = settings.initial_bps;
  if (settings.safety_factor !== null) abr.bandwidthUpgradeTarget = settings.safety_factor;
  const streaming = {};
  if (settings.buffer_s !== null) streaming.bufferingGoal = settings.buffer_s;
  const cmcd = {
    enabled: settings.cmcd !== "off",
    useHeaders: settings.cmcd === "header",
    sessionId: settings.session,
    contentId: "clip",
  };
  player.configure({ abr, streaming, cmcd });

  const asked = (why) => {
    const track = player.getVariantTracks().find((one) => one.active);
    if (track) tell.level(Number(track.originalVideoId), why);
  };
  const estimate = () => player.getStats().estimatedBandwidth;
  const said = () => `Shaka says no reason; its estimate is ${Math.round(estimate())} bit/s`;
  player.addEventListener("adaptation", () => asked(said()));
  player.addEventListener("variantchanged", () => asked(said()));
  player.addEventListener("streaming", () => setTimeout(() => asked("the level that it starts with"), 0));
  const types = shaka.net.NetworkingEngine.RequestType;
  player.getNetworkingEngine().registerResponseFilter((type, response, context) => {
    if (type !== types.SEGMENT || /init-/.test(response.uri)) return;
    const what = response.uri.split("/").pop().split("?")[0];
    tell.say("segment_fetched", response.data.byteLength, "B", `${what}: ${(response.timeMs / 1000).toFixed(3)} s`);
    if (response.timeMs !== undefined) tell.say("segment_fetch_time", response.timeMs / 1000, "s", what);
    tell.say("estimate", estimate(), "bit/s", "Shaka: estimatedBandwidth");
  });
  const failed = (error) => {
    const why = `Shaka: error ${error.code} of category ${error.category}`;
    if (error.severity !== shaka.util.Error.Severity.CRITICAL) tell.say("player_warning", null, "", why);
    else if (error.category === shaka.util.Error.Category.NETWORK) tell.givenUp(why);
    else tell.fail(why);
  };
  player.addEventListener("error", (event) => failed(event.detail));

  return {
    async load(url) {
      try {
        await player.attach(video);
        await player.load(url.dash, settings.begin_s > 0 ? settings.begin_s : null);
        await video.play();
      } catch (error) {
        if (error.code !== undefined && error.category !== undefined) failed(error);
        else tell.fail(`Shaka: ${error}`);
      }
    },
  };
}
