// What every player's page has in common: what is said and when, stalls as the picture shows them, samples.
//
// Beside it lie `library.js`, the player as its authors publish it, and `player.js`, which sets it up: it defines
// `makePlayer(video, settings, tell)`, which gives an object with `load(url)`. `tell` has `say`, `level`, `givenUp` and
// `fail`.
"use strict";

const LOOK_MS = 50; // how often the picture's clock is read
const STALL_MS = 100; // a picture that stands still for less is no stall, as for the other players
const SAMPLE_MS = 500;
const FLUSH_MS = 200;
const EXCHANGES = 200; // at most, and fewer where one was quick enough
const CLOCK_ERROR_MS = 0.3;

const video = document.getElementById("video");
let pending = [];

// What is said goes by this page's clock in ms; whoever serves the page turns it into CLOCK_MONOTONIC.
function say(name, value = null, unit = "", reason = "", atMs = performance.now()) {
  pending.push({ at_ms: atMs, name, value: Number.isFinite(value) ? value : null, unit, reason });
}

async function flush() {
  if (pending.length === 0) return;
  const said = pending;
  pending = [];
  await fetch("said", { method: "POST", body: JSON.stringify(said), keepalive: true });
}

// The server's clock against this page's, by the quickest of some exchanges: half of what it took is the error.
async function readClock(most = EXCHANGES) {
  let best = null;
  for (let number = 0; number < most; number += 1) {
    const before = performance.now();
    const told = await (await fetch("clock", { cache: "no-store" })).json();
    const after = performance.now();
    const exchange = { page_ms: (before + after) / 2, error_ms: (after - before) / 2, server_ns: told.now_ns };
    if (best === null || exchange.error_ms < best.error_ms) best = exchange;
    if (number >= 20 && best.error_ms < CLOCK_ERROR_MS) break;
  }
  await fetch("clock", { method: "POST", body: JSON.stringify(best) });
}

function bufferedS() {
  const now = video.currentTime;
  for (let number = 0; number < video.buffered.length; number += 1) {
    if (video.buffered.start(number) <= now + 0.1 && now < video.buffered.end(number)) {
      return video.buffered.end(number) - now;
    }
  }
  return 0;
}

// Play as its viewer sees it: the picture's clock goes on, or it does not.
class Watch {
  constructor() {
    this.isOver = false;
    this.hasBegun = false;
    this.isHeld = false;
    this.isStalled = false;
    this.stalls = 0;
    this.position = 0;
    this.movedMs = performance.now();
  }

  begin(atMs) {
    if (this.hasBegun) return;
    this.hasBegun = true;
    this.position = video.currentTime;
    this.movedMs = atMs;
    say("playout_start", null, "s", "to the first picture", atMs);
    say("stall_count", 0, "1");
  }

  look() {
    if (!this.hasBegun || this.isOver) return;
    const now = performance.now();
    if (video.currentTime !== this.position || this.isHeld) {
      if (this.isStalled && !this.isHeld) {
        say("resume", (now - this.movedMs) / 1000, "s", "the picture's clock goes on: how long it stalled", now);
      }
      if (!this.isHeld) this.isStalled = false;
      this.position = video.currentTime;
      this.movedMs = now;
    } else if (!this.isStalled && now - this.movedMs > STALL_MS) {
      this.isStalled = true;
      this.stalls += 1;
      const held = `${bufferedS().toFixed(2)} s held`;
      say("stall", null, "", `the picture's clock stands still; ${held}`, this.movedMs);
    }
  }

  sample() {
    if (this.isOver) return;
    say("buffer", bufferedS(), "s");
    if (!this.hasBegun) return;
    const seen = video.getVideoPlaybackQuality();
    say("frames_rendered", seen.totalVideoFrames - seen.droppedVideoFrames, "1");
    say("frames_dropped", seen.droppedVideoFrames, "1", "too late to be drawn, or decoded too slowly");
    say("stall_count", this.stalls, "1");
    say("position", video.currentTime, "s", "media time shown");
  }

  over(name, reason) {
    if (this.isOver) return;
    this.sample();
    this.isOver = true;
    say(name, null, "", reason);
  }
}

async function main() {
  const settings = await (await fetch("settings.json")).json();
  const watch = new Watch();
  let player = null;
  let level = null;

  const tell = {
    say,
    // A level by the number of its representation, which is its place from the lowest rate up.
    level(number, reason, name = "level_changed", atMs = performance.now()) {
      const found = settings.levels[number];
      if (found === undefined || (name === "level_changed" && number === level)) return;
      if (name === "level_changed") level = number;
      say(name, found.bit_rate_bps, "bit/s", reason, atMs);
    },
    // The network gave nothing for as long as the player waits: what a viewer sees, and no fault of the trial.
    givenUp(reason) {
      say("given_up", null, "", reason);
      watch.over("media_end", "the player gave up");
      flush();
    },
    fail(reason) {
      say("error", null, "", reason);
      flush();
    },
  };

  const commands = {
    start() {
      player.load(settings.url);
      setInterval(() => watch.sample(), SAMPLE_MS);
    },
    pause() {
      watch.isHeld = true;
      video.pause();
      say("paused");
    },
    resume() {
      say("resumed");
      watch.isHeld = false;
      watch.movedMs = performance.now();
      video.play();
    },
    async stop() {
      watch.look();
      watch.over("stopped", "");
      await flush();
      await readClock(20);
      await fetch("ended", { method: "POST", body: "" });
    },
  };

  window.addEventListener("error", (event) => tell.fail(`in the page: ${event.message}`));
  await readClock();
  player = makePlayer(video, settings, tell);
  video.addEventListener("ended", () => {
    watch.over("media_end", "the end of the media was shown");
    flush();
  });
  video.addEventListener("error", () => {
    const why = video.error ? `${video.error.code}: ${video.error.message}` : "no message";
    tell.fail(`the media cannot be played (${why})`);
  });
  video.requestVideoFrameCallback((now) => watch.begin(now));
  video.addEventListener("resize", () => say("picture_height", video.videoHeight, "1", "lines of the picture that is shown"));
  setInterval(() => watch.look(), LOOK_MS);
  setInterval(flush, FLUSH_MS);

  const told = new EventSource("commands");
  told.onmessage = (message) => {
    const words = JSON.parse(message.data);
    commands[words.cmd]();
  };
  told.onopen = () => fetch("ready", { method: "POST", body: "" });
}

main().catch((error) => {
  say("error", null, "", `in the page: ${error}`);
  flush();
});
